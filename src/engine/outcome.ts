import { isCommitted, type Job, type JobError } from '../core/job/job.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'

/** How a job ended, or that it is parked. `reason` is a stable identifier if there is one. */
export type JobOutcome<Output = unknown> =
  | { readonly kind: 'succeeded'; readonly job: Job; readonly output: Output }
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
 * Whether the outcome of a job is known: it has ended, is parked, or is committed. A committed job
 * can only succeed, although its effects may not be delivered yet.
 */
export function isSettled(job: Job, lifecycles: readonly Lifecycle[]): boolean {
  return job.outcome !== null || isCommitted(job) || isParked(job, lifecycles)
}

function isParked(job: Job, lifecycles: readonly Lifecycle[]): boolean {
  if (job.blockedReason !== null) return true
  // If the version is unknown here, the state's role is unknown too, until the job ends or is
  // migrated.
  const lifecycle = lifecycles.find(
    ({ name, version }) => name === job.lifecycle && version === job.lifecycleVersion,
  )
  return lifecycle?.roles.get(job.state) === 'parked'
}

/** The outcome of a settled job; `result` is its stored JSON text. */
export function outcomeOf<Output>(job: Job, result: string | undefined): JobOutcome<Output> {
  const { outcome, error } = job
  const reason = job.reason ?? job.blockedReason
  if (isCommitted(job)) {
    return { kind: 'succeeded', job, output: JSON.parse(result ?? 'null') as Output }
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
