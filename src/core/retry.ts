/**
 * When a failed or crashed job may run again, and how often. There are three budgets:
 *
 * - failures: the handler threw;
 * - crashes: the lease expired after the handler started;
 * - releases: the attempt was released.
 *
 * A counter counts granted retries, so it never exceeds its bound. The failure that finds its
 * budget spent ends or parks the job and is not counted.
 *
 * Delay of the n-th retry, n from 1:
 *   fixed        delayMs
 *   exponential  delayMs × factor^(n − 1), at most delayMaxMs
 * then spread by jitter over a window: delay + jitter × random × window, random from [0, 1).
 *
 * The window is as long as the delay. If many retries already wait in the same queue, it is longer:
 * 100 ms for each of them, at most 12 s. Jobs that fail together, because a service is down, are
 * therefore not retried together. A retry is never earlier than its delay. Without jitter it is
 * exactly its delay later, which lifecycles with a fixed delay require. A delay of 0 has no window.
 */
import { DefinitionInvalid } from './errors.ts'
import { shown } from './format.ts'

export interface RetryPolicy {
  /** How many retries are granted; 0 disables retries. */
  readonly max: number
  readonly backoff: 'fixed' | 'exponential'
  readonly delayMs: number
  readonly factor: number
  readonly delayMaxMs: number
  /** The part of the window that is used, from 0 (no spread) to 1. */
  readonly jitter: number
}

/** All budgets of a job, how it is recovered after a crash, and whether its end is notified. */
export interface JobPolicy {
  readonly retry: RetryPolicy
  readonly crashesMax: number
  readonly releasesMax: number
  /** With 'operator', a stalled job is flagged and waits for an operator's approval. */
  readonly recovery: 'automatic' | 'operator'
  /** Whether a notification is sent when the job ends or is parked; false if absent. */
  readonly notify?: boolean
}

/** What a job type may override. Absent fields come from its lifecycle. */
export interface PolicyOverrides {
  readonly retry?: Partial<RetryPolicy> | RetryPolicy['backoff']
  readonly crashesMax?: number
  readonly releasesMax?: number
  readonly recovery?: JobPolicy['recovery']
  readonly notify?: boolean
}

/** 366 days. Longer delays are mistakes, and would overflow timers and sums. */
export const DELAY_MAX_MS = 366 * 24 * 60 * 60 * 1000
const COUNT_MAX = 10_000

/** How much each waiting retry lengthens the window, and its maximum length. */
const WINDOW_STEP_MS = 100
const WINDOW_MAX_MS = 12_000
/** More waiting retries than this do not lengthen the window. */
export const RETRIES_AHEAD_MAX = WINDOW_MAX_MS / WINDOW_STEP_MS

/**
 * The values of the job-lifecycle requirements (R2), with jitter: `standard` does not fix the
 * delay.
 */
export const DEFAULT_RETRY: RetryPolicy = {
  max: 3,
  backoff: 'fixed',
  delayMs: 1000,
  factor: 2,
  delayMaxMs: 60 * 60 * 1000,
  jitter: 1,
}

/** Used by every lifecycle that defines no policy. */
export const DEFAULT_POLICY: JobPolicy = {
  retry: DEFAULT_RETRY,
  crashesMax: 3,
  releasesMax: 100,
  recovery: 'automatic',
}

/**
 * Returns the delay before the n-th retry. `random` is from [0, 1). `retriesAhead` is the number of
 * retries that already wait in the queue of the job.
 */
export function retryDelayMs(
  policy: RetryPolicy,
  n: number,
  random: number,
  retriesAhead = 0,
): number {
  const grown =
    policy.backoff === 'fixed'
      ? policy.delayMs
      : // The power may be infinite, and 0 × infinity would be NaN.
        Math.min(
          policy.delayMs === 0 ? 0 : policy.delayMs * policy.factor ** (n - 1),
          policy.delayMaxMs,
        )
  const crowdMs = grown === 0 ? 0 : Math.min(retriesAhead * WINDOW_STEP_MS, WINDOW_MAX_MS)
  return Math.round(grown + policy.jitter * random * Math.max(grown, crowdMs))
}

/** Returns the earliest and the latest delay that the policy allows for the n-th retry. */
export function retryDelayBounds(policy: RetryPolicy, n: number): { min: number; max: number } {
  const max = retryDelayMs(policy, n, 1, RETRIES_AHEAD_MAX)
  return { min: retryDelayMs(policy, n, 0), max }
}

/** Applies overrides to a policy. Throws `DefinitionInvalid` if the result is out of bounds. */
export function mergePolicy(base: JobPolicy, overrides: PolicyOverrides): JobPolicy {
  const retry =
    typeof overrides.retry === 'string' ? { backoff: overrides.retry } : (overrides.retry ?? {})
  const notify = overrides.notify ?? base.notify
  const merged: JobPolicy = {
    retry: { ...base.retry, ...retry },
    crashesMax: overrides.crashesMax ?? base.crashesMax,
    releasesMax: overrides.releasesMax ?? base.releasesMax,
    recovery: overrides.recovery ?? base.recovery,
    // `false` is stored as absent. `findPolicyFault` rejects values that are not boolean.
    ...(notify !== undefined && notify !== false && { notify }),
  }
  const fault = findPolicyFault(merged)
  if (fault !== undefined) throw new DefinitionInvalid(...fault)
  return merged
}

/**
 * Returns the first field that is out of bounds and what it must be; `undefined` if all are valid.
 */
export function findPolicyFault(policy: JobPolicy): [field: string, why: string] | undefined {
  const { retry, crashesMax, releasesMax, recovery, notify } = policy
  const isCount = (n: number) => Number.isSafeInteger(n) && n >= 0 && n <= COUNT_MAX
  const isDelay = (n: number) => Number.isSafeInteger(n) && n >= 0 && n <= DELAY_MAX_MS
  const isWithin = (n: number, min: number, max: number) =>
    Number.isFinite(n) && n >= min && n <= max
  const delay = `whole milliseconds from 0 to ${DELAY_MAX_MS}`
  const count = `a whole number from 0 to ${COUNT_MAX}`
  const rules: [field: string, value: unknown, holds: boolean, what: string][] = [
    ['retry.max', retry.max, isCount(retry.max), count],
    [
      'retry.backoff',
      retry.backoff,
      ['fixed', 'exponential'].includes(retry.backoff),
      "'fixed' or 'exponential'",
    ],
    ['retry.delayMs', retry.delayMs, isDelay(retry.delayMs), delay],
    ['retry.delayMaxMs', retry.delayMaxMs, isDelay(retry.delayMaxMs), delay],
    ['retry.factor', retry.factor, isWithin(retry.factor, 1, 100), 'a number from 1 to 100'],
    ['retry.jitter', retry.jitter, isWithin(retry.jitter, 0, 1), 'a number from 0 to 1'],
    ['crashesMax', crashesMax, isCount(crashesMax), count],
    ['releasesMax', releasesMax, isCount(releasesMax), count],
    [
      'recovery',
      recovery,
      ['automatic', 'operator'].includes(recovery),
      "'automatic' or 'operator'",
    ],
    ['notify', notify, notify === undefined || typeof notify === 'boolean', 'true or false'],
  ]
  const broken = rules.find(([, , holds]) => !holds)
  return broken && [broken[0], `must be ${broken[3]}, not ${shown(broken[1])}`]
}
