import type { Job } from '../core/job/job.ts'
import { laneOf } from '../core/job/lanes.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'

/** One attempt of a drain. */
export interface DrainedAttempt {
  readonly jobId: string
  readonly type: string
  readonly attempt: number
}

/** The jobs that a drain ran, by their state after it: ids in order of start. */
export interface Drained {
  readonly succeeded: readonly string[]
  readonly failed: readonly string[]
  readonly cancelled: readonly string[]
  /** Jobs that wait for a person. */
  readonly parked: readonly string[]
  /** Committed jobs whose effects are not delivered yet. */
  readonly delivering: readonly string[]
  /** Jobs that wait for another attempt. */
  readonly waiting: readonly string[]
  /** Jobs whose process died; they are held until their leases expire. */
  readonly held: readonly string[]
  /** All attempts in order. A job that was retried at once has several. */
  readonly attempts: readonly DrainedAttempt[]
  /** The point at which the process died, if it did. */
  readonly crashed?: string
}

/** Groups jobs by their current state. */
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
