/** What a drain tells of the jobs that it worked on. */
import type { Job } from '../core/job/job.ts'
import { laneOf } from '../core/job/lanes.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'

/** One attempt that was made. */
export interface DrainedAttempt {
  readonly jobId: string
  readonly type: string
  readonly attempt: number
}

/** The jobs that a drain worked on: their ids, by where they are after it, in order of start. */
export interface Drained {
  readonly succeeded: readonly string[]
  readonly failed: readonly string[]
  readonly cancelled: readonly string[]
  /** They wait for a person. */
  readonly parked: readonly string[]
  /** They have committed, and effects are still to be delivered. */
  readonly delivering: readonly string[]
  /** They wait for another attempt. */
  readonly waiting: readonly string[]
  /** Their process died, and they are held until their leases run out. */
  readonly held: readonly string[]
  /** Every attempt, in order; a job that was retried at once has several. */
  readonly attempts: readonly DrainedAttempt[]
  /** Where the process died, if it did. */
  readonly crashed?: string
}

/** Sorts the jobs that were worked on by where they are now. */
export function drainedOf(
  attempts: readonly DrainedAttempt[],
  jobs: readonly { readonly job: Job; readonly lifecycle: Lifecycle }[],
  now: number,
): Drained {
  const ids: Record<keyof Omit<Drained, 'attempts' | 'crashed'>, string[]> = {
    succeeded: [],
    failed: [],
    cancelled: [],
    parked: [],
    delivering: [],
    waiting: [],
    held: [],
  }
  for (const { job, lifecycle } of jobs) {
    const lane = laneOf(lifecycle, job, now)
    if (job.outcome !== null) ids[job.outcome].push(job.id)
    else if (lane === 'parked' || lane === 'delivering' || lane === 'held') ids[lane].push(job.id)
    else ids.waiting.push(job.id)
  }
  return { ...ids, attempts }
}
