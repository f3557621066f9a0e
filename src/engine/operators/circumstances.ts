/** Reads everything that `explain` needs to know about a job. */
import { JobNotFound } from '../../core/errors.ts'
import type { Timing } from '../../core/job/facts.ts'
import { DAMAGED } from '../../core/job/isolate.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import { doubtsOf } from '../../doctor/doubts.ts'
import { examine } from '../../doctor/patient.ts'
import { rowFaults } from '../../doctor/row-faults.ts'
import { endOf } from '../../stores/machines.ts'
import type { EffectInfo, Store } from '../../stores/store.ts'
import { type Versions, versionsOf } from '../../stores/versions.ts'
import { workerOf } from '../../stores/worker-info.ts'
import type { Circumstances } from './explain.ts'

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
  const queue = (await store.listQueues()).find(({ name }) => name === job.queue)
  const now = store.now()
  const workers = (await store.listWorkers()).map((row) => workerOf(row, now))
  const time = store.timeStatus?.()
  const timing = job.outcome === null ? undefined : await lastTiming(store, id)
  const migratesTo = route && endOf(route).lifecycle.version
  const faults = await faultsOf(store, versions, id, now)
  return {
    ...{ job, lifecycle, queue, workers, effects, now },
    ...(faults.length > 0 && { faults }),
    ...(timing !== undefined && { timing }),
    ...(time !== undefined && { time }),
    ...(migratesTo !== undefined && { migratesTo }),
  }
}

/** What the doctor would say of the row; a job that was set aside already says so itself. */
async function faultsOf(
  store: Store,
  { usable, stored }: Versions,
  id: string,
  now: number,
): Promise<string[]> {
  const dossier = await store.examination.dossierOf(id)
  if (dossier === undefined) return []
  const patient = examine(dossier, usable, stored)
  if (patient.lifecycle === undefined || patient.folded?.blockedReason === DAMAGED) return []
  const doubts = doubtsOf(patient).filter(({ kind }) => kind === 'state')
  return doubts.length > 0 ? doubts.map(({ what }) => what) : rowFaults(patient, now)
}

async function lastTiming(store: Store, id: string): Promise<Timing | undefined> {
  const facts = await store.facts(id)
  return facts.findLast(({ timing }) => timing !== undefined)?.timing
}
