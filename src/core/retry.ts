/**
 * When a failed or crashed job may run again, and how often. Three budgets are counted apart:
 * failures (the handler threw), crashes (the lease ran out after the handler started) and releases
 * (the attempt was given back). A counter counts what was granted, so it never passes its bound:
 * the failure that finds the budget spent ends or parks the job and is not counted.
 *
 * Delay of the n-th retry, n from 1:
 *   fixed        delayMs
 *   exponential  delayMs × factor^(n − 1), at most delayMaxMs
 * then spread by jitter over a window: delay + jitter × random × window, random from [0, 1).
 *
 * The window is as long as the delay. If many retries wait in the same queue already, it is longer:
 * 100 ms for each of them, and at most 12 s. Jobs that fail together, because what they all need is
 * away, therefore do not come back together. A retry is never earlier than its delay. Without
 * jitter it is exactly its delay later, as lifecycles that fix the delay want it; a delay of 0 has
 * no window.
 */
import { DefinitionInvalid } from './errors.ts'

/** How failures are retried. */
export interface RetryPolicy {
  /** How many retries are granted; 0 means none. */
  readonly max: number
  readonly backoff: 'fixed' | 'exponential'
  readonly delayMs: number
  readonly factor: number
  readonly delayMaxMs: number
  /** Which part of the window is used: from 0, no spread at all, to 1. */
  readonly jitter: number
}

/** Every budget of a job, who recovers it after a crash, and whether anybody is told of its end. */
export interface JobPolicy {
  readonly retry: RetryPolicy
  readonly crashesMax: number
  readonly releasesMax: number
  /** With 'operator' a stalled job is flagged and waits for a person's approval. */
  readonly recovery: 'automatic' | 'operator'
  /** Whether somebody is to be told when the job ends or is parked; nobody if absent. */
  readonly notify?: boolean
}

/** What a job type may override; what is absent comes from its lifecycle. */
export interface PolicyOverrides {
  readonly retry?: Partial<RetryPolicy> | RetryPolicy['backoff']
  readonly crashesMax?: number
  readonly releasesMax?: number
  readonly recovery?: JobPolicy['recovery']
  readonly notify?: boolean
}

/** A year: longer delays are mistakes, and would overflow timers and sums. */
export const DELAY_MAX_MS = 366 * 24 * 60 * 60 * 1000
const COUNT_MAX = 10_000

/** How much longer the window becomes with each retry that waits already, and how long at most. */
const WINDOW_STEP_MS = 100
const WINDOW_MAX_MS = 12_000
/** More waiting retries than this make no difference. */
export const RETRIES_AHEAD_MAX = WINDOW_MAX_MS / WINDOW_STEP_MS

/** Document 002's numbers, spread by jitter because `standard` does not fix the delay. */
export const DEFAULT_RETRY: RetryPolicy = {
  max: 3,
  backoff: 'fixed',
  delayMs: 1000,
  factor: 2,
  delayMaxMs: 60 * 60 * 1000,
  jitter: 1,
}

/** The default budgets of every lifecycle that does not say otherwise. */
export const DEFAULT_POLICY: JobPolicy = {
  retry: DEFAULT_RETRY,
  crashesMax: 3,
  releasesMax: 100,
  recovery: 'automatic',
}

/**
 * How long to wait before the n-th retry; `random` is from [0, 1), `retriesAhead` is how many
 * retries wait in the queue of the job.
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
      : // The power may be infinite; no delay stays none, however often it is doubled.
        Math.min(
          policy.delayMs === 0 ? 0 : policy.delayMs * policy.factor ** (n - 1),
          policy.delayMaxMs,
        )
  const crowdMs = grown === 0 ? 0 : Math.min(retriesAhead * WINDOW_STEP_MS, WINDOW_MAX_MS)
  return Math.round(grown + policy.jitter * random * Math.max(grown, crowdMs))
}

/** The earliest and the latest delay that the policy can give to the n-th retry. */
export function retryDelayBounds(policy: RetryPolicy, n: number): { min: number; max: number } {
  const max = retryDelayMs(policy, n, 1, RETRIES_AHEAD_MAX)
  return { min: retryDelayMs(policy, n, 0), max }
}

/** Applies overrides to a lifecycle's policy and checks the result. */
export function mergePolicy(base: JobPolicy, overrides: PolicyOverrides): JobPolicy {
  const retry =
    typeof overrides.retry === 'string' ? { backoff: overrides.retry } : (overrides.retry ?? {})
  const notify = overrides.notify ?? base.notify
  const merged: JobPolicy = {
    retry: { ...base.retry, ...retry },
    crashesMax: overrides.crashesMax ?? base.crashesMax,
    releasesMax: overrides.releasesMax ?? base.releasesMax,
    recovery: overrides.recovery ?? base.recovery,
    // Absent where it is not wanted; anything but a boolean is left for the check to refuse.
    ...(notify !== undefined && notify !== false && { notify }),
  }
  const fault = findPolicyFault(merged)
  if (fault !== undefined) throw new DefinitionInvalid(...fault)
  return merged
}

/** The field of a policy that is out of bounds, and what it must be; nothing when all is well. */
export function findPolicyFault(policy: JobPolicy): [field: string, why: string] | undefined {
  const { retry, crashesMax, releasesMax, recovery, notify } = policy
  const isCount = (n: number) => Number.isSafeInteger(n) && n >= 0 && n <= COUNT_MAX
  const isDelay = (n: number) => Number.isSafeInteger(n) && n >= 0 && n <= DELAY_MAX_MS
  const isWithin = (n: number, min: number, max: number) =>
    Number.isFinite(n) && n >= min && n <= max
  const rules: [string, boolean, string][] = [
    ['retry.max', isCount(retry.max), `a whole number from 0 to ${COUNT_MAX}`],
    ['retry.backoff', ['fixed', 'exponential'].includes(retry.backoff), 'fixed or exponential'],
    ['retry.delayMs', isDelay(retry.delayMs), `whole milliseconds up to ${DELAY_MAX_MS}`],
    ['retry.delayMaxMs', isDelay(retry.delayMaxMs), `whole milliseconds up to ${DELAY_MAX_MS}`],
    ['retry.factor', isWithin(retry.factor, 1, 100), 'a number from 1 to 100'],
    ['retry.jitter', isWithin(retry.jitter, 0, 1), 'a number from 0 to 1'],
    ['crashesMax', isCount(crashesMax), `a whole number from 0 to ${COUNT_MAX}`],
    ['releasesMax', isCount(releasesMax), `a whole number from 0 to ${COUNT_MAX}`],
    ['recovery', ['automatic', 'operator'].includes(recovery), 'automatic or operator'],
    ['notify', notify === undefined || typeof notify === 'boolean', 'true or false'],
  ]
  const broken = rules.find(([, holds]) => !holds)
  return broken && [broken[0], `must be ${broken[2]}`]
}
