/** Workers as they report themselves. */
import { CLOCK_SLACK_MS } from '../core/job/fence.ts'
import type { WorkerRow } from './contract/store.ts'

/** A worker reports every five seconds; one that missed three reports counts as gone. */
export const SILENT_AFTER_MS = 15_000

/** A job whose handler shows no activity under a live lease. */
export interface SilentJob {
  readonly job: string
  readonly attempt: number
  /** Its last sign of life, by the store's time. */
  readonly since: number
}

/** What a worker does, as people see it; `gone` if it has not reported for 15 seconds. */
export type WorkerActivity = 'working' | 'idle' | 'draining' | 'gone'

/** A worker, with its last report. */
export interface WorkerInfo {
  readonly id: string
  /** The state of the worker machine that describes it: Idle, Processing or Draining. */
  readonly state: string
  readonly activity: WorkerActivity
  readonly startedAt: number
  readonly seenAt: number
  readonly live: boolean
  /** The release of Pawl that it runs; absent for releases that did not report it. */
  readonly version: string | undefined
  /** Absent if it works on all queues. */
  readonly queues: readonly string[] | undefined
  /** Absent if it did not report it. */
  readonly types: readonly string[] | undefined
  readonly running: number
  readonly concurrency: number
  /** Whether a thread of its own renews its leases; absent if it did not report it. */
  readonly renewal: 'thread' | 'timer' | undefined
  /** What to do so that a thread renews them; absent if there is one, or cannot be one. */
  readonly renewalAdvice: string | undefined
  /** Slots that are taken by handlers which go on although their attempts are over. */
  readonly stuck: number
  /** Jobs whose handlers may hang; the first ones. */
  readonly silent: readonly SilentJob[]
  /**
   * The schedules of its code; absent if it did not report them, or has more than 200.
   */
  readonly schedules: readonly string[] | undefined
  /** The version of its time zone data; absent if it did not report it. */
  readonly zoneData: string | undefined
}

/** Whether a worker has reported lately. A time in the future does not count. */
export function isLive(
  { seenAt }: Pick<WorkerRow, 'seenAt'>,
  now: number,
  silentMs = SILENT_AFTER_MS,
): boolean {
  return now - seenAt <= silentMs && seenAt <= now + CLOCK_SLACK_MS
}

/** The worker of a row, at a time. */
export function workerOf(row: WorkerRow, now: number): WorkerInfo {
  const { id, state, startedAt, seenAt } = row
  const info = infoOf(row.info)
  const live = isLive(row, now)
  const running = Number(info.running ?? 0)
  return {
    ...{ id, state, startedAt, seenAt, live, running },
    activity: live ? activityOf(state, running) : 'gone',
    version: typeof info.version === 'string' ? info.version : undefined,
    queues: textsIn(info.queues),
    types: textsIn(info.types),
    concurrency: Number(info.concurrency ?? 0),
    renewal: info.renewal === 'thread' || info.renewal === 'timer' ? info.renewal : undefined,
    renewalAdvice: typeof info.renewalAdvice === 'string' ? info.renewalAdvice : undefined,
    stuck: Number(info.stuck ?? 0),
    silent: silentIn(info.silent),
    schedules: textsIn(info.schedules),
    zoneData: typeof info.zoneData === 'string' ? info.zoneData : undefined,
  }
}

/** Earlier releases report the state of their loop, so the number of running jobs counts. */
function activityOf(state: string, running: number): WorkerActivity {
  if (state === 'Draining') return 'draining'
  return running > 0 || state === 'Processing' ? 'working' : 'idle'
}

/** Reports of other releases may differ, and must not cause errors. */
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
