/**
 * The numbers of `pawl stats` and `pawl top`: those of `/api/v1/overview`, and workers, limits,
 * schedules, retention and the size of the file. Every part is bounded, so a store with millions
 * of jobs is read as quickly as a small one.
 */
import { stat } from 'node:fs/promises'
import { shortName } from '../../core/limits/short-names.ts'
import type { Pawl } from '../../engine/pawl.ts'
import { placeOf } from '../../engine/store-options.ts'
import { overviewOf } from '../../http/overview.ts'
import type { Store } from '../../stores/contract/store.ts'
import type { Call } from '../spec.ts'

const WORKERS_MAX = 100
const LIMITS_MAX = 100
const SCHEDULES_MAX = 500
/** Workers look for due schedules often; a tick that is due for longer than this is late. */
const LATE_MS = 10_000

export type Stats = Awaited<ReturnType<typeof readStats>>

/** Reads everything but retention, which is too slow to be read every second. */
export async function readStats(pawl: Pawl, call: Call) {
  const { store } = pawl
  const overview = await overviewOf(pawl)
  const workers = await pawl.workers.list()
  const bytes = await bytesOf(call)
  return {
    ...overview,
    workerList: workers
      .toSorted((a, b) => Number(b.live) - Number(a.live) || b.running - a.running)
      .slice(0, WORKERS_MAX),
    limits: (await store.limits.totals(LIMITS_MAX)).map(({ limit, blockedSince, ...total }) => ({
      limit: shortName(limit),
      ...total,
      ...(blockedSince !== undefined && { blockedMs: Math.max(0, overview.now - blockedSince) }),
    })),
    schedules: await schedulesOf(store, overview.now),
    ...(bytes !== undefined && { bytes }),
  }
}

async function schedulesOf(store: Store, now: number) {
  const { items, next } = await store.schedules.list({ limit: SCHEDULES_MAX })
  const paused = items.filter(({ pausedAt }) => pausedAt !== undefined)
  const lateMs = items
    .filter(({ pausedAt }) => pausedAt === undefined)
    .map(({ nextAt = now }) => now - nextAt)
    .filter((ms) => ms > LATE_MS)
  return {
    count: items.length,
    /** There are more, and the other numbers are about the first ones. */
    more: next !== undefined,
    paused: paused.length,
    late: lateMs.length,
    latestMs: lateMs.length === 0 ? null : Math.max(...lateMs),
  }
}

/** The size of a SQLite file and its log; `undefined` for other stores. */
async function bytesOf({ settings }: Call): Promise<number | undefined> {
  const place = placeOf(settings.store.value)
  if (place.kind !== 'sqlite') return undefined
  const { path } = place.options
  try {
    const { size: file } = await stat(path)
    return (
      file +
      (await stat(`${path}-wal`).then(
        ({ size }) => size,
        () => 0,
      ))
    )
  } catch {
    return undefined
  }
}

/**
 * Jobs of each queue that ended per second between two readings, by the counters of the store. A
 * queue from which retention has removed more jobs than have ended has none.
 */
export function endedRates(before: Stats | undefined, after: Stats): ReadonlyMap<string, number> {
  if (before === undefined || after.now <= before.now) return new Map()
  const seconds = (after.now - before.now) / 1000
  const counted = new Map(before.queues.map(({ name, lanes }) => [name, lanes.ended]))
  return new Map(
    after.queues.flatMap(({ name, lanes }) => {
      const ended = lanes.ended - (counted.get(name) ?? Number.NaN)
      return ended >= 0 ? [[name, ended / seconds] as const] : []
    }),
  )
}
