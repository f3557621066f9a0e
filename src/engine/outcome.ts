import { isCommitted, type Job, type JobError } from '../core/job/job.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import { ChildFailed } from './errors.ts'
import { readResult } from './stored-values.ts'

/** How a job ended, or that it is parked. `reason` is a stable identifier if there is one. */
export type JobOutcome<Output = unknown> =
  /**
   * Committed: what it did is final. While `isDelivering` is true, effects are still being
   * delivered, and the state of the job is that of a running job until they are.
   */
  | {
      readonly kind: 'succeeded'
      readonly job: Job
      readonly output: Output
      readonly isDelivering: boolean
    }
  | {
      readonly kind: 'failed'
      readonly job: Job
      readonly reason: string | null
      readonly error: JobError | null
    }
  | { readonly kind: 'cancelled'; readonly job: Job; readonly reason: string | null }
  /** Waits for a person; it may still succeed. */
  | {
      readonly kind: 'parked'
      readonly job: Job
      readonly reason: string | null
      readonly error: JobError | null
    }

/**
 * How a job ended that another one has waited for. It is the same in every attempt of the job that
 * waited, also if the other one is redriven later.
 */
export type ChildOutcome<Output = unknown> =
  | { readonly kind: 'succeeded'; readonly jobId: string; readonly output: Output }
  | {
      readonly kind: 'failed'
      readonly jobId: string
      readonly reason: string | null
      readonly error: JobError | null
    }
  | { readonly kind: 'cancelled'; readonly jobId: string; readonly reason: string | null }

/** Whether a job has succeeded. */
export function isSucceeded<Output>(
  outcome: ChildOutcome<Output>,
): outcome is Extract<ChildOutcome<Output>, { kind: 'succeeded' }> {
  return outcome.kind === 'succeeded'
}

/** Returns the output of a job that has succeeded. Throws `ChildFailed` if it has not. */
export function unwrap<Output>(outcome: ChildOutcome<Output>): Output {
  if (isSucceeded(outcome)) return outcome.output
  throw new ChildFailed(outcome)
}

/**
 * Whether the outcome of a job is known: it has ended, is parked, or is committed. A committed job
 * can only succeed, although its effects may not be delivered yet.
 */
export function isSettled(job: Job, lifecycles: readonly Lifecycle[]): boolean {
  return job.outcome !== null || isCommitted(job) || isParked(job, lifecycles)
}

/** Whether a job waits for a person. */
function isParked(job: Job, lifecycles: readonly Lifecycle[]): boolean {
  if (job.blockedReason !== null) return true
  // If the version is unknown here, the state's role is unknown too, until the job ends or is
  // migrated.
  const lifecycle = lifecycles.find(
    ({ name, version }) => name === job.lifecycle && version === job.lifecycleVersion,
  )
  return lifecycle?.roles.get(job.state) === 'parked'
}

/**
 * The outcome of a settled job; `result` is its stored text. Throws `ResultNotStored` if the job
 * succeeded with a result that could not be stored.
 */
export function outcomeOf<Output>(job: Job, result: string | undefined): JobOutcome<Output> {
  const { outcome, error } = job
  const reason = job.reason ?? job.blockedReason
  if (isCommitted(job)) {
    const output = readResult(job.id, result) as Output
    return { kind: 'succeeded', job, output, isDelivering: outcome === null }
  }
  switch (outcome) {
    case 'failed':
      return { kind: 'failed', job, reason, error }
    case 'cancelled':
      return { kind: 'cancelled', job, reason }
    default:
      return { kind: 'parked', job, reason, error }
  }
}
