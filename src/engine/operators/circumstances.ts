/** Reads everything that `explain` needs to know about a job. */
import { JobNotFound } from '../../core/errors.ts'
import type { Fact } from '../../core/job/facts.ts'
import { DAMAGED } from '../../core/job/isolate.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import type { ThrownError } from '../../core/thrown.ts'
import { doubtsOf } from '../../doctor/doubts.ts'
import { examine } from '../../doctor/examined-job.ts'
import { rowFaults } from '../../doctor/row-faults.ts'
import type { EffectInfo, Store } from '../../stores/contract/store.ts'
import { isOutage } from '../../stores/errors.ts'
import { endOf } from '../../stores/machines.ts'
import { type Versions, versionsOf } from '../../stores/versions.ts'
import { workerOf } from '../../stores/worker-info.ts'
import { ENQUEUED_BY } from '../worker/children.ts'
import { type Circumstances, explain } from './explain.ts'
import { obstacleOf } from './explain-limits.ts'
import { chainOf } from './explain-waits.ts'

/** How many effects per state are read, the newest first. */
const EFFECTS_MAX = 100

/** Reads a job, its queue, its effects and the workers; throws `JobNotFound`. */
export async function circumstancesOf(
  store: Store,
  lifecycles: readonly Lifecycle[],
  id: string,
): Promise<Circumstances> {
  const job = await store.get(id)
  if (job === undefined) throw new JobNotFound(id)
  const versions = await versionsOf(store, lifecycles)
  const lifecycle = versions.usable.find(
    ({ name, version }) => name === job.lifecycle && version === job.lifecycleVersion,
  )
  const route = versions.routeOf(job)
  const effects: EffectInfo[] = []
  for (const state of ['parked', 'pending'] as const) {
    const page = await store.listEffects({ jobId: id, state }, { limit: EFFECTS_MAX })
    effects.push(...page.items)
  }
  // All jobs of the store are counted for this list, and only reasons of ready jobs name it.
  const isReady = lifecycle === undefined || lifecycle.roles.get(job.state) === 'ready'
  const queues = isReady ? await store.listQueues() : []
  const queue = queues.find(({ name }) => name === job.queue)
  const now = store.now()
  const workers = (await store.listWorkers()).map((row) => workerOf(row, now))
  const time = store.timeStatus?.()
  const facts = await factsOf(store, id)
  const timing = facts.findLast(({ timing }) => timing !== undefined)?.timing
  const enqueuedBy = facts[0]?.metadata?.[ENQUEUED_BY]
  const thrown = job.error === null ? undefined : lastThrown(facts)
  const migratesTo = route && endOf(route).lifecycle.version
  const waitsFor = job.outcome === null ? await store.admissions.waiting(id) : undefined
  const faults = await faultsOf(store, versions, id, now)
  const obstacle = await obstacleOf(store, job)
  const chain = await chainOf(store, job)
  const last = chain?.jobs[chain.jobs.length - 1]
  const end = last && explain(await circumstancesOf(store, lifecycles, last.id))
  return {
    ...{ job, lifecycle, queue, workers, effects, now },
    ...(faults.length > 0 && { faults }),
    ...(waitsFor !== undefined && { waitsFor }),
    ...(timing !== undefined && job.outcome !== null && { timing }),
    ...(enqueuedBy !== undefined && { enqueuedBy }),
    ...(thrown !== undefined && { thrown }),
    ...(obstacle !== undefined && { obstacle }),
    ...(chain !== undefined && end !== undefined && { chain: { ...chain, end } }),
    ...(time !== undefined && { time }),
    ...(migratesTo !== undefined && { migratesTo }),
  }
}

/** Returns no facts if they cannot be read; the faults of the job then say why. */
async function factsOf(store: Store, id: string): Promise<Fact[]> {
  try {
    return await store.facts(id)
  } catch (error) {
    if (isOutage(error)) throw error
    return []
  }
}

/** What the doctor would say of the row; a job that was set aside already says so itself. */
async function faultsOf(
  store: Store,
  { usable, stored }: Versions,
  id: string,
  now: number,
): Promise<string[]> {
  const job = await store.examination.storedJobOf(id)
  if (job === undefined) return []
  const examined = examine(job, usable, stored)
  if (examined.lifecycle === undefined || examined.folded?.blockedReason === DAMAGED) return []
  const doubts = doubtsOf(examined).filter(({ kind }) => kind === 'state')
  return doubts.length > 0 ? doubts.map(({ what }) => what) : rowFaults(examined, now)
}

/** What the fact has that set the error of the job. */
function lastThrown(facts: readonly Fact[]): ThrownError | undefined {
  return facts.findLast(({ error }) => error !== undefined)?.thrown
}
