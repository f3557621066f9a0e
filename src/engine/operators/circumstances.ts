/** Reads everything that `explain` needs to know about a job. */
import { JobNotFound } from '../../core/errors.ts'
import type { Timing } from '../../core/job/facts.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import { endOf } from '../../stores/machines.ts'
import type { EffectInfo, Store } from '../../stores/store.ts'
import { versionsOf } from '../../stores/versions.ts'
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
  return {
    ...{ job, lifecycle, queue, workers, effects, now },
    ...(timing !== undefined && { timing }),
    ...(time !== undefined && { time }),
    ...(migratesTo !== undefined && { migratesTo }),
  }
}

async function lastTiming(store: Store, id: string): Promise<Timing | undefined> {
  const facts = await store.facts(id)
  return facts.findLast(({ timing }) => timing !== undefined)?.timing
}
