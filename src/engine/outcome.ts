/** How a job came out, as a union that says everything a caller can do something about. */

import { isCommitted, type Job, type JobError } from '../core/job/job.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'

/** What became of a job. `reason` is a stable word where there is one. */
export type JobOutcome<Output = unknown> =
  | { readonly kind: 'succeeded'; readonly job: Job; readonly output: Output }
  | {
      readonly kind: 'failed'
      readonly job: Job
      readonly reason: string | null
      readonly error: JobError | null
    }
  | { readonly kind: 'cancelled'; readonly job: Job; readonly reason: string | null }
  /** It waits for a person; it may yet succeed. */
  | {
      readonly kind: 'parked'
      readonly job: Job
      readonly reason: string | null
      readonly error: JobError | null
    }

/**
 * Whether it is clear what came of a job: it has ended, or waits for a person, or was committed and
 * can only succeed, though effects of it may still be delivered.
 */
export function isSettled(job: Job, lifecycles: readonly Lifecycle[]): boolean {
  return job.outcome !== null || isCommitted(job) || isParked(job, lifecycles)
}

function isParked(job: Job, lifecycles: readonly Lifecycle[]): boolean {
  if (job.blockedReason !== null) return true
  // Of a version that is not known here nobody can say it before the job ends or is migrated.
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
