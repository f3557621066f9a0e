/**
 * Leases and due times that lie further ahead than any that Pawl writes. Such a row would never be
 * read again: no lease would end, no effect become due. No fact contains these times, so workers
 * replace them, as a heartbeat or the next try would. The doctor reports those that it finds first.
 */
import { CLOCK_SLACK_MS, isEndless, LEASE_MAX_MS } from '../core/job/fence.ts'
import { DELAY_MAX_MS } from '../core/retry.ts'
import type { FactRow, JobRow } from './rows.ts'

/** The length of a lease if no fact says how long it was. */
const LEASE_MS = 30_000

/**
 * The lease that replaces one which would never end; `undefined` if the row has no such lease. It
 * lasts as long as the claim granted: a live holder renews it, and a dead one loses the job.
 */
export function cutLease(
  { lease_until }: Pick<JobRow, 'lease_until'>,
  claim: Pick<FactRow, 'at' | 'lease_until'> | undefined,
  now: number,
): number | undefined {
  if (lease_until === null || !isEndless(lease_until, now)) return undefined
  const granted = (claim?.lease_until ?? 0) - (claim?.at ?? 0)
  return now + (granted > 0 && granted <= LEASE_MAX_MS ? granted : LEASE_MS)
}

/** How long an effect is left to the dispatcher that holds it. */
const HELD_MS = 60_000

/**
 * Bounds beyond which the time of a pending effect is damage, and the time that replaces it:
 * claimed ones wait for the end of a lease, others for the next try.
 */
export interface EffectBounds {
  readonly claimedMax: number
  readonly otherMax: number
  readonly claimedUntil: number
}

/** The bounds at a time. */
export function effectBounds(now: number): EffectBounds {
  return {
    claimedMax: now + LEASE_MAX_MS + CLOCK_SLACK_MS,
    otherMax: now + DELAY_MAX_MS + CLOCK_SLACK_MS,
    claimedUntil: now + HELD_MS,
  }
}
