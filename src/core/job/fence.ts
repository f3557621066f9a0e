/**
 * The fence (promise P4, rule G5): every write by a worker names the attempt and the claim that it
 * holds, and its lease must be valid by the store's clock. An expired lease cannot be renewed.
 * Heartbeats and progress, which write no facts, are fenced too.
 */
import { StaleFence } from '../errors.ts'
import type { Fence } from './commands.ts'
import type { Job } from './job.ts'

/** The longest lease. Holders renew their leases, so no longer one is needed. */
export const LEASE_MAX_MS = 86_400_000
/** A stored time that is further in the future than this is damage, not a clock difference. */
export const CLOCK_SLACK_MS = 3_600_000

/** Returns true if a lease ends later than any lease that a store grants: it is damaged. */
export function isEndless(leaseUntil: number, now: number): boolean {
  return leaseUntil > now + LEASE_MAX_MS + CLOCK_SLACK_MS
}

/** Returns why the fence does not name the current execution; `undefined` if it does. */
export function findFenceMismatch(job: Job, fence: Fence): StaleFence | undefined {
  if (job.execution === null) return new StaleFence(job.id, 'not-held')
  if (fence.attempt !== job.attempt) return new StaleFence(job.id, 'attempt')
  if (fence.claim !== job.execution.claim) return new StaleFence(job.id, 'claim')
  return undefined
}

/** Returns why the holder may not write; `undefined` if it may. */
export function findStale(job: Job, fence: Fence, now: number): StaleFence | undefined {
  const mismatch = findFenceMismatch(job, fence)
  if (mismatch !== undefined) return mismatch
  return isExpired(job, now) ? new StaleFence(job.id, 'expired') : undefined
}

/** Returns true if the lease has expired. A lease expires at the millisecond `leaseUntil`. */
export function isExpired(job: Job, now: number): boolean {
  return job.execution !== null && job.execution.leaseUntil <= now
}
