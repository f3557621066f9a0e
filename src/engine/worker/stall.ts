import { type Failure, type FailureContext, ownFailure } from '../../core/failure.ts'
import type { Job } from '../../core/job/job.ts'
import { type Lifecycle, pathOf } from '../../core/lifecycles/lifecycle.ts'
import type { AttemptStalled } from '../errors.ts'

/**
 * Returns the failure of an attempt whose handler shows no activity. It may be retried, with the
 * delay that the lifecycle sets for crashes. Returns `undefined` if recovery needs an operator, or
 * if the lifecycle has no retry edge: then nothing is reported, the lease expires, and recovery
 * decides.
 */
export function stallFailure(
  reason: AttemptStalled,
  job: Job,
  lifecycle: Lifecycle,
  context: FailureContext,
): Failure | undefined {
  const { recovery } = job.policy ?? lifecycle.policy
  if (recovery === 'operator') return undefined
  if (pathOf(lifecycle, lifecycle.held, 'retry') === undefined) return undefined
  const failure = ownFailure(reason, { class: 'retryable', kind: 'timeout' }, context)
  const { delayMs } = lifecycle.crash
  return delayMs === 'as-retry' ? failure : { ...failure, retryAfterMs: delayMs }
}
