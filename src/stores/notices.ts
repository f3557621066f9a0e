/**
 * Notices: where a kind of job asks for it, every fact that ends or parks a job puts a row into the
 * outbox, in the same transaction (R3: the API is told of success and failure). Whoever is to be
 * told then learns of it at least once, whatever dies in between.
 *
 * A notice is no effect of the job: the job is over without it. It stands in the outbox under a
 * type and a name that no job and no effect may have, numbered by the fact that it tells of.
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

/** What a notice is parked with if nobody has tried to deliver it. */
export const NOT_RECEIVED = 'No process received this notice within 7 days'

/** How many notices one step parks, or one look counts. */
export const NOTICES_MAX = 1000

/** The notices that were not delivered, each number up to `NOTICES_MAX`. */
export interface UndeliveredNotices {
  /** Those due before the time that was asked for. */
  readonly overdue: number
  /** When the first of them was due. */
  readonly since: number | null
  readonly parked: number
}

/** Names that no job and no effect may have: those of what Pawl itself puts into the outbox. */
const RESERVED = 'pawl.'

/** What is wrong with the name of a job or an effect; nothing where it is free. */
export function reservedName(name: string): string | undefined {
  return name.startsWith(RESERVED) ? `must not begin with "${RESERVED}"` : undefined
}

/** What a notice says of a job; nothing of what is in it. */
export interface Notice {
  readonly jobId: string
  readonly type: string
  readonly queue: string
  readonly key: string | null
  readonly tags: readonly string[]
  /** How it ended, or that it waits for a person. */
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

/** The notice of a fact on a job as it was before; nothing where nobody asked, or nothing ended. */
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
