import type { Job } from '../core/job/job.ts'
import { laneOf } from '../core/job/lanes.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { AnyJob } from '../engine/job-types.ts'

/** One attempt of a drain. */
export interface DrainedAttempt {
  readonly jobId: string
  readonly type: string
  readonly attempt: number
}

/** An attempt that failed, and why. */
export interface DrainFailure extends DrainedAttempt {
  /** What the job records of the failure. */
  readonly message: string
  /** What the handler threw, with its stack; undefined if it did not throw, as for a time-out. */
  readonly error: unknown
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
  /** The attempts that failed, in order, also those whose jobs succeeded later. */
  readonly failures: readonly DrainFailure[]
  /** The point at which the process died, if it did. */
  readonly crashed?: string
}

/** Groups jobs by their current state. */
export function drainedOf(
  attempts: readonly DrainedAttempt[],
  jobs: readonly { readonly job: Job; readonly lifecycle: Lifecycle }[],
  now: number,
): Omit<Drained, 'failures'> {
  const ids: Record<keyof Omit<Drained, 'attempts' | 'failures' | 'crashed'>, string[]> = {
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

/** Keeps what handlers throw until the failures of their attempts are reported. */
export class ThrownErrors {
  readonly #errors = new Map<string, unknown>()

  /** The same job type, with a handler whose exceptions are kept. */
  watch<J extends AnyJob>(job: J): J {
    const { run } = job
    if (run === undefined) return job
    const watched: typeof run = async (context) => {
      try {
        return await (run(context) as Promise<unknown>)
      } catch (error) {
        this.#errors.set(`${context.jobId}/${context.attempt}`, error)
        throw error
      }
    }
    return { ...job, run: watched }
  }

  /** The failure of the last attempt of a job; empty if it did not fail. */
  failuresOf({ id: jobId, type, attempt, error }: Job): DrainFailure[] {
    const thrown = this.#errors.get(`${jobId}/${attempt}`)
    if (error === null) return []
    return [{ jobId, type, attempt, message: error.message, error: thrown }]
  }
}
