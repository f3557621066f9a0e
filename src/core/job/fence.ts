/**
 * The fence (promise P4, rule G5): every write by a worker names the attempt and the claim that it
 * holds, and its lease must still run by the store's clock. An expired lease is not revived by
 * anyone. Also used for heartbeats and progress, which write no facts.
 */
import { StaleFence } from '../errors.ts'
import type { Fence } from './commands.ts'
import type { Job } from './job.ts'

/** The longest lease. Holders renew theirs, so nothing needs a longer one. */
export const LEASE_MAX_MS = 86_400_000
/** By how much clocks may differ before a time in the future is taken as damage. */
export const CLOCK_SLACK_MS = 3_600_000

/** Whether a lease ends later than any lease can that was granted: somebody else wrote it. */
export function isEndless(leaseUntil: number, now: number): boolean {
  return leaseUntil > now + LEASE_MAX_MS + CLOCK_SLACK_MS
}

/** Nothing when the fence names the present execution; else why it is stale. */
export function findFenceMismatch(job: Job, fence: Fence): StaleFence | undefined {
  if (job.execution === null) return new StaleFence(job.id, 'not-held')
  if (fence.attempt !== job.attempt) return new StaleFence(job.id, 'attempt')
  if (fence.claim !== job.execution.claim) return new StaleFence(job.id, 'claim')
  return undefined
}

/** Nothing when the holder may write; else why it may not. */
export function findStale(job: Job, fence: Fence, now: number): StaleFence | undefined {
  const mismatch = findFenceMismatch(job, fence)
  if (mismatch !== undefined) return mismatch
  return isExpired(job, now) ? new StaleFence(job.id, 'expired') : undefined
}

/** Whether the lease has run out; a lease holds until the millisecond that it names. */
export function isExpired(job: Job, now: number): boolean {
  return job.execution !== null && job.execution.leaseUntil <= now
}
