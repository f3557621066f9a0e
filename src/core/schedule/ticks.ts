/**
 * The ticks of a schedule: the times at which it is due. A schedule has either a cron expression in
 * a time zone, or an interval. The ticks of an interval are its multiples since 1970-01-01 00:00
 * UTC, so every process has the same ones.
 *
 * The core does not know cron. It asks a `TickSource`, which the engine makes
 * (`src/engine/schedules/cron.ts`).
 */

/** When a schedule is due. */
export type Timing =
  | { readonly kind: 'cron'; readonly cron: string; readonly timezone: string }
  | { readonly kind: 'every'; readonly everyMs: number }

/** The ticks of one schedule, in the order of time. */
export interface TickSource {
  /** The first tick that is later than `after`, in milliseconds; `undefined` if there is none. */
  next(after: number): number | undefined
}

/** The last time that a `Date` can represent. */
const TIME_MAX = 8_640_000_000_000_000

/** The ticks of an interval. */
export function everyTicks(everyMs: number): TickSource {
  return {
    next(after) {
      const tick = (Math.floor(after / everyMs) + 1) * everyMs
      return tick <= TIME_MAX ? tick : undefined
    },
  }
}

/**
 * The last tick that is later than `after` and not later than `until`. It is found by bisection, so
 * that a long outage of a schedule with many ticks costs some dozens of calls of `next`.
 */
export function lastTick(ticks: TickSource, after: number, until: number): number | undefined {
  let found = within(ticks, after, until)
  // Mostly there is one tick, or none.
  if (found === undefined || within(ticks, found, until) === undefined) return found
  // There is no tick after `high` up to `until`.
  let high = until
  while (high - found > 1) {
    const middle = Math.floor((found + high) / 2)
    const later = within(ticks, middle, until)
    if (later === undefined) high = middle
    else found = later
  }
  return within(ticks, found, until) ?? found
}

/** The first tick that is later than `after` and not later than `until`. */
function within(ticks: TickSource, after: number, until: number): number | undefined {
  const tick = ticks.next(after)
  return tick !== undefined && tick <= until ? tick : undefined
}

/** How many ticks are later than `after` and not later than `until`; counted up to `max`. */
export function countTicks(ticks: TickSource, after: number, until: number, max: number): number {
  let count = 0
  let tick = within(ticks, after, until)
  while (tick !== undefined) {
    count++
    if (count === max) break
    tick = within(ticks, tick, until)
  }
  return count
}

/** The ticks later than `after` and not later than `until`; at most `max`. */
export function listTicks(ticks: TickSource, after: number, until: number, max: number): number[] {
  const found: number[] = []
  let tick = within(ticks, after, until)
  while (tick !== undefined && found.length < max) {
    found.push(tick)
    tick = within(ticks, tick, until)
  }
  return found
}
