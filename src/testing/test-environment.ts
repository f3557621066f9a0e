/**
 * The environment of a store or an engine in tests. The test controls time, random numbers and ids.
 * Only the turns of the event loop are real, because asynchronous code needs them.
 */
import { checkFields, type FieldChecks } from '../core/fields.ts'
import type { Timer, Timers } from '../core/ports.ts'
import type { Environment } from '../environment/system.ts'
import { ManualClock } from './manual-clock.ts'
import { SeededRandom } from './seeded-random.ts'
import { SequentialIds } from './sequential-ids.ts'

/** The options of `testEnvironment`. */
export interface TestEnvironmentOptions {
  /**
   * The start time, in milliseconds since the epoch.
   * @defaultValue 1 January 2026
   */
  readonly start?: number
  /**
   * The seed of the random numbers.
   * @defaultValue 1
   */
  readonly seed?: number
}

/** An environment whose time stands still until the test advances it. */
export interface TestEnvironment extends Environment {
  readonly clock: ManualClock
  /** Advances the time, and fires every timer that becomes due, in order. */
  advance(ms: number): void
  /** The time until the next timer fires; undefined if no timer is set. */
  untilNextTimer(): number | undefined
}

const number = (value: number) => (Number.isFinite(value) ? undefined : 'must be a number')

/** @internal */
export const ENVIRONMENT_OPTIONS: FieldChecks<TestEnvironmentOptions> = {
  start: number,
  seed: number,
}

interface Armed {
  readonly at: number
  readonly callback: () => void
}

/** A manual clock, timers driven by it, seeded random numbers and sequential ids. */
export function testEnvironment(options: TestEnvironmentOptions = {}): TestEnvironment {
  checkFields(options, ENVIRONMENT_OPTIONS, { what: 'options' })
  const { start, seed = 1 } = options
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

/** The next timer that fires up to `end`; of several at the same time, the first that was set. */
function firstDue(armed: ReadonlySet<Armed>, end: number): Armed | undefined {
  let first: Armed | undefined
  for (const entry of armed) {
    if (entry.at <= end && (first === undefined || entry.at < first.at)) first = entry
  }
  return first
}
