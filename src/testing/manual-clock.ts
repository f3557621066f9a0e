import type { Clock } from '../core/ports.ts'

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  #now: number

  constructor(start = Date.UTC(2026, 0, 1)) {
    this.#now = start
  }

  now(): number {
    return this.#now
  }

  /** Advances the time; it never runs backwards. */
  advance(ms: number): void {
    if (!Number.isSafeInteger(ms) || ms < 0) {
      throw new RangeError('The time to advance must be a whole number of milliseconds from 0')
    }
    this.#now += ms
  }
}
