/**
 * The rule of throttles (GCRA): in every half-open window of `period`, at most `limit` units start.
 *
 * With a burst of b units, T = ceil(period / (limit - b + 1)) is the time that one unit takes. The
 * gate has one number, `tat`: the time at which everything that has started is paid for. A job of u
 * units may start at tat + (u - b) × T or later, and sets tat = max(tat, now) + u × T. So units
 * that start within a window of length p number at most b - 1 + p / T, rounded up: `limit`.
 * `test/core/limits.test.ts` checks this for random bursts, units and arrival times.
 *
 * A job with more units than the burst has to wait until the gate has been idle for a while.
 *
 * Times of the gate are whole microseconds, because T may be less than a millisecond.
 */

/** What a throttle allows. */
export interface Rate {
  /** How many units may start in a period. */
  readonly limit: number
  readonly periodMs: number
  /** How many units may start at once. */
  readonly burst: number
}

/** A tenth of the limit, at least one: a larger burst costs sustained rate. */
export function defaultBurst(limit: number): number {
  return Math.max(1, Math.floor(limit / 10))
}

/** Returns the time that one unit takes, in microseconds. */
export function unitTime({ limit, periodMs, burst }: Rate): number {
  return Math.ceil((periodMs * 1000) / (limit - burst + 1))
}

/** Returns the earliest time at which a job may start, in milliseconds; 0 if any time. */
export function startAt(rate: Rate, tat: number | null, units: number): number {
  if (tat === null) return 0
  return Math.ceil((tat + (units - rate.burst) * unitTime(rate)) / 1000)
}

/** Returns `tat` after a start. */
export function tatAfter(rate: Rate, tat: number | null, units: number, now: number): number {
  return Math.max(tat ?? 0, now * 1000) + units * unitTime(rate)
}

/** Returns how many units may start now. */
export function allowed(rate: Rate, tat: number | null, now: number): number {
  const debt = Math.max(0, (tat ?? 0) - now * 1000)
  return Math.max(0, Math.floor(rate.burst - debt / unitTime(rate)))
}
