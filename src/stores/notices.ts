/**
 * Notices: if a job has `notify: true`, every fact that ends or parks it inserts a row into the
 * outbox, in the same transaction (R3: the API learns of success and failure). So the receiver gets
 * it at least once, whatever process fails.
 *
 * A notice is not an effect of the job: the job ends without it. Its type and its name in the
 * outbox are reserved, and its number is that of the fact.
 */
import { evolve } from '../core/job/evolve.ts'
import type { Fact } from '../core/job/facts.ts'
import type { Job } from '../core/job/job.ts'
import { laneOf } from '../core/job/lanes.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import { markOf } from './effects.ts'

/** The type and the name of a notice in the outbox. */
export const NOTICE = 'pawl.notify'

/**
 * A notice that no process has tried to deliver for so long is parked: it is then listed with other
 * parked effects, and an operator can retry it. Each try moves the due time, so a receiver that
 * fails for a week is bound by its retries instead.
 */
export const NOTICE_AGE_MAX_MS = 7 * 24 * 60 * 60 * 1000

/** The error of a notice that no process has tried to deliver. */
export const NOT_RECEIVED = 'No process received this notice within 7 days'

/** How many notices are parked or counted at once. */
export const NOTICES_MAX = 1000

/** The notices that were not delivered, each number up to `NOTICES_MAX`. */
export interface UndeliveredNotices {
  /** Notices that were due before the given time. */
  readonly overdue: number
  /** When the first of them was due. */
  readonly since: number | null
  readonly parked: number
}

/** The content of a notice; it contains no input and no result. */
export interface Notice {
  readonly jobId: string
  readonly type: string
  readonly queue: string
  readonly key: string | null
  readonly tags: readonly string[]
  /** How it ended, or that it is parked. */
  readonly outcome: 'succeeded' | 'failed' | 'cancelled' | 'parked'
  readonly state: string
  readonly reason: string | null
  readonly error: string | null
  readonly attempt: number
  /** The number of the fact, and its time. */
  readonly seq: number
  readonly at: number
}

/** A notice that is about to be written. */
export interface NoticeRow {
  readonly jobId: string
  readonly seq: number
  readonly at: number
  readonly payload: string
}

/** The mark of a notice in the outbox. */
export function noticeMark({ jobId, seq: n, payload }: NoticeRow): string {
  return markOf({ job_id: jobId, type: NOTICE, name: NOTICE, n, payload })
}

/**
 * The notice of a fact, given the job before it; `undefined` if the job asks for none, or did not
 * end.
 */
export function noticeOf(lifecycle: Lifecycle, before: Job, fact: Fact): NoticeRow | undefined {
  if (before.policy?.notify !== true) return undefined
  const job = evolve(before, fact)
  const lane = laneOf(lifecycle, job, fact.at)
  if (lane !== 'ended' && lane !== 'parked') return undefined
  if (lane === laneOf(lifecycle, before, fact.at)) return undefined
  const notice: Notice = {
    jobId: job.id,
    type: job.type,
    queue: job.queue,
    key: job.key,
    tags: job.tags,
    outcome: job.outcome ?? 'parked',
    state: job.state,
    reason: job.reason ?? job.blockedReason,
    error: job.error?.message ?? null,
    attempt: job.attempt,
    seq: fact.seq,
    at: fact.at,
  }
  return { jobId: job.id, seq: fact.seq, at: fact.at, payload: JSON.stringify(notice) }
}
