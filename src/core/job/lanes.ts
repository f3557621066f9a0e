/**
 * Lanes are what the scheduler sees. A lane is derived from state, due time and commit at the time
 * of writing; a state may sit in several lanes: a ready job whose time has not come waits (rule
 * G2).
 */
import type { Lifecycle } from '../lifecycles/lifecycle.ts'
import { isCommitted, type Job } from './job.ts'

/** The lanes, with the numbers under which stores keep them. */
export const LANES = {
  idle: 0,
  waiting: 1,
  ready: 2,
  held: 3,
  parked: 4,
  ended: 5,
  /** Committed, with effects still in the outbox; nobody holds a lease. */
  delivering: 6,
  /** Kept back by a limit; reserved. */
  blocked: 7,
} as const

/** The name of a lane. */
export type Lane = keyof typeof LANES

/** The lane of a job at a time. */
export function laneOf(lifecycle: Lifecycle, job: Job, now: number): Lane {
  if (job.outcome !== null) return 'ended'
  if (isCommitted(job)) return 'delivering'
  if (job.blockedReason !== null) return 'parked'
  switch (lifecycle.roles.get(job.state)) {
    case 'idle':
      return job.runAt === null ? 'idle' : 'waiting'
    case 'ready':
      return isDue(job, now) ? 'ready' : 'waiting'
    case 'waiting':
      return 'waiting'
    case 'held':
      return 'held'
    default:
      // Parked, and states that this lifecycle does not know: both wait for a person.
      return 'parked'
  }
}

/** Whether the job's time has come; a job without a due time is never due. */
export function isDue(job: Job, now: number): boolean {
  return job.runAt !== null && job.runAt <= now
}
