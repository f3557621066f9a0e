/** What a worker tells of itself, read by those who look at it from outside. */
import type { WorkerRow } from './store.ts'

/** A worker tells of itself every five seconds; one that missed three times is taken for gone. */
export const SILENT_AFTER_MS = 15_000

/** A worker, with what it told of itself. */
export interface KnownWorker {
  readonly id: string
  readonly state: string
  readonly startedAt: number
  readonly seenAt: number
  readonly live: boolean
  /** Nothing where it works on all. */
  readonly queues: readonly string[] | undefined
  readonly types: readonly string[]
  readonly running: number
  readonly concurrency: number
}

/** A worker by its row. */
export function workerOf(row: WorkerRow, now: number): KnownWorker {
  const { id, state, startedAt, seenAt } = row
  const info = infoOf(row.info)
  return {
    ...{ id, state, startedAt, seenAt },
    live: now - seenAt <= SILENT_AFTER_MS,
    queues: textsIn(info.queues),
    types: textsIn(info.types) ?? [],
    running: Number(info.running ?? 0),
    concurrency: Number(info.concurrency ?? 0),
  }
}

/** What other releases tell may differ, and must not break whoever reads it. */
function infoOf(text: string): Record<string, unknown> {
  try {
    const info = JSON.parse(text) as unknown
    return typeof info === 'object' && info !== null ? (info as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

function textsIn(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : undefined
}
