/**
 * The environment of a store or an engine under test: the test owns time, chance and ids. Only the
 * turn of the event loop is real, because asynchronous code cannot be tested without it.
 */
import type { Timer, Timers } from '../core/ports.ts'
import type { Environment } from '../environment/system.ts'
import { ManualClock } from './manual-clock.ts'
import { SeededRandom } from './seeded-random.ts'
import { SequentialIds } from './sequential-ids.ts'

/** What a test environment may be given instead of its defaults. */
export interface TestEnvironmentOptions {
  /** When its time begins, in milliseconds since the epoch. */
  readonly start?: number
  readonly seed?: number
}

/** An environment whose time stands still until the test moves it. */
export interface TestEnvironment extends Environment {
  readonly clock: ManualClock
  /** Moves the time on, and fires on the way every timer that comes due, in order. */
  advance(ms: number): void
  /** How long it is until the next timer fires; nothing where none is set. */
  untilNextTimer(): number | undefined
}

interface Armed {
  readonly at: number
  readonly callback: () => void
}

/** A manual clock, timers that it drives, seeded random numbers and ids that count. */
export function testEnvironment({ start, seed = 1 }: TestEnvironmentOptions = {}): TestEnvironment {
  const clock = new ManualClock(start)
  const armed = new Set<Armed>()
  const timers: Timers = {
    after(delayMs, callback): Timer {
      const entry = { at: clock.now() + Math.max(0, Math.ceil(delayMs)), callback }
      armed.add(entry)
      return { cancel: () => void armed.delete(entry) }
    },
    defer(callback) {
      setImmediate(callback)
    },
  }
  return {
    clock,
    timers,
    random: new SeededRandom(seed),
    ids: new SequentialIds(),
    untilNextTimer() {
      const next = firstDue(armed, Number.POSITIVE_INFINITY)
      return next === undefined ? undefined : Math.max(0, next.at - clock.now())
    },
    advance(ms) {
      const end = clock.now() + ms
      for (let next = firstDue(armed, end); next !== undefined; next = firstDue(armed, end)) {
        armed.delete(next)
        clock.advance(Math.max(0, next.at - clock.now()))
        next.callback()
      }
      clock.advance(end - clock.now())
    },
  }
}

/** The timer that fires next, up to a time; of several at once the one that was set first. */
function firstDue(armed: ReadonlySet<Armed>, end: number): Armed | undefined {
  let first: Armed | undefined
  for (const entry of armed) {
    if (entry.at <= end && (first === undefined || entry.at < first.at)) first = entry
  }
  return first
}
