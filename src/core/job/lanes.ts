/**
 * A lane is how the scheduler sees a job. The store derives it from state, due time and commit when
 * it writes the job. Jobs in one state can be in different lanes: a ready job before its due time
 * is in lane `waiting` (rule G2).
 */
import type { Lifecycle } from '../lifecycles/lifecycle.ts'
import { isCommitted, type Job } from './job.ts'

/** The lanes, with the numbers that stores keep. */
export const LANES = {
  idle: 0,
  waiting: 1,
  ready: 2,
  held: 3,
  parked: 4,
  ended: 5,
  /** Committed, with effects still in the outbox. There is no lease. */
  delivering: 6,
  /** Blocked by a limit; reserved. */
  blocked: 7,
} as const

export type Lane = keyof typeof LANES

/** Returns the lane of a job at a time. */
export function laneOf(lifecycle: Lifecycle, job: Job, now: number): Lane {
  if (job.outcome !== null) return 'ended'
  if (isCommitted(job)) return 'delivering'
  if (job.blockedReason !== null) return 'parked'
  switch (lifecycle.roles.get(job.state)) {
    case 'idle':
      return job.runAt === null ? 'idle' : 'waiting'
    case 'ready':
      // A dependent without a state of its own for waiting has no due time.
      return job.runAt === null ? 'idle' : isDue(job, now) ? 'ready' : 'waiting'
    case 'waiting':
      // A job that waits for a signal without a time-out has no due time.
      return job.runAt === null ? 'idle' : 'waiting'
    case 'held':
      return 'held'
    default:
      // Parked states, and states that this lifecycle does not know: both wait for an operator.
      return 'parked'
  }
}

/** Returns true if the due time was reached. A job without a due time is never due. */
export function isDue(job: Job, now: number): boolean {
  return job.runAt !== null && job.runAt <= now
}
