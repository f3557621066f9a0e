/** Workers as they tell of themselves, for whoever looks at them from outside. */
import { CLOCK_SLACK_MS } from '../core/job/fence.ts'
import type { WorkerRow } from './store.ts'

/** A worker tells of itself every five seconds; one that missed three times is taken for gone. */
export const SILENT_AFTER_MS = 15_000

/** A job whose handler shows no activity under a live lease. */
export interface SilentJob {
  readonly job: string
  readonly attempt: number
  /** Its last sign of life, by the store's time. */
  readonly since: number
}

/** A worker, with what it told of itself. */
export interface WorkerInfo {
  readonly id: string
  readonly state: string
  readonly startedAt: number
  readonly seenAt: number
  readonly live: boolean
  /** Nothing where it works on all. */
  readonly queues: readonly string[] | undefined
  /** Nothing where it did not say. */
  readonly types: readonly string[] | undefined
  readonly running: number
  readonly concurrency: number
  /** Slots that are taken by handlers which go on although their attempts are over. */
  readonly stuck: number
  /** Jobs whose handlers may hang; the first ones. */
  readonly silent: readonly SilentJob[]
}

/** Whether a worker was heard of lately. A time that has not come yet says nothing. */
export function isLive(
  { seenAt }: Pick<WorkerRow, 'seenAt'>,
  now: number,
  silentMs = SILENT_AFTER_MS,
): boolean {
  return now - seenAt <= silentMs && seenAt <= now + CLOCK_SLACK_MS
}

/** What a row tells of a worker at a time. */
export function workerOf(row: WorkerRow, now: number): WorkerInfo {
  const { id, state, startedAt, seenAt } = row
  const info = infoOf(row.info)
  return {
    ...{ id, state, startedAt, seenAt },
    live: isLive(row, now),
    queues: textsIn(info.queues),
    types: textsIn(info.types),
    running: Number(info.running ?? 0),
    concurrency: Number(info.concurrency ?? 0),
    stuck: Number(info.stuck ?? 0),
    silent: silentIn(info.silent),
  }
}

/** What other releases tell may differ, and must not break anything. */
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

function silentIn(value: unknown): readonly SilentJob[] {
  if (!Array.isArray(value)) return []
  return value.filter((item): item is SilentJob => {
    const { job, attempt, since } = (item ?? {}) as Partial<SilentJob>
    return typeof job === 'string' && Number.isFinite(attempt) && Number.isFinite(since)
  })
}
