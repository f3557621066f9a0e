/**
 * Virtual time, and the order in which things happen. Everything that a simulated process does
 * begins with an event of this queue: a timer that has come due, or a turn of its event loop. One
 * event happens at a time, with all that follows from it without waiting; then the next is chosen,
 * among those that could happen now, by the seed. When nothing can happen now, time moves on to the
 * next timer, so years pass as fast as they are uneventful.
 */
import type { Clock, Random, Timer, Timers } from 'pawl/testing'

interface Event {
  readonly at: number
  readonly happen: () => void
}

/** How many turns of event loops may follow each other before time moves on. */
const TURNS_MAX = 1000

/** The queue of everything that is still to happen. */
export class Scheduler implements Timers {
  readonly clock: Clock = { now: () => this.#now }
  readonly #random: Random
  readonly #timers = new Set<Event>()
  readonly #turns: (() => void)[] = []
  #now: number
  #steps = 0
  #turnsInRow = 0

  constructor(start: number, random: Random) {
    this.#now = start
    this.#random = random
  }

  /** How many events have happened. */
  get steps(): number {
    return this.#steps
  }

  after(delayMs: number, callback: () => void): Timer {
    const event = { at: this.#now + Math.max(0, Math.ceil(delayMs)), happen: callback }
    this.#timers.add(event)
    return { cancel: () => void this.#timers.delete(event) }
  }

  defer(callback: () => void): void {
    this.#turns.push(callback)
  }

  /** Resolves after a while. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve))
  }

  /** All clocks leap: the machine was asleep. */
  leap(ms: number): void {
    this.#now += ms
  }

  /** Lets one event happen, with all that follows from it; returns false if there is none. */
  async step(): Promise<boolean> {
    const happen = this.#isRestless() ? this.#takeTimer() : (this.#takeTurn() ?? this.#takeTimer())
    if (happen === undefined) return false
    this.#steps++
    happen()
    // Promises that follow from it settle before the event loop of this real process turns.
    await new Promise<void>((resolve) => setImmediate(resolve))
    return true
  }

  /** Steps until a promise is settled; returns undefined if `isOver`, or if nothing is left. */
  async stepUntilSettled<T>(
    promise: Promise<T>,
    isOver: () => boolean,
  ): Promise<{ value: T } | { error: unknown } | undefined> {
    let outcome: { value: T } | { error: unknown } | undefined
    promise.then(
      (value) => {
        outcome = { value }
      },
      (error) => {
        outcome = { error }
      },
    )
    await new Promise<void>((resolve) => setImmediate(resolve))
    while (outcome === undefined) if (isOver() || !(await this.step())) return undefined
    return outcome
  }

  /** Time also passes for a process that takes turn after turn without ever waiting. */
  #isRestless(): boolean {
    return this.#turnsInRow >= TURNS_MAX && this.#timers.size > 0
  }

  #takeTurn(): (() => void) | undefined {
    if (this.#turns.length === 0) return undefined
    this.#turnsInRow++
    const chosen = Math.floor(this.#random.next() * this.#turns.length)
    return this.#turns.splice(chosen, 1)[0]
  }

  #takeTimer(): (() => void) | undefined {
    let next: Event[] = []
    for (const event of this.#timers) {
      // What is overdue since a leap is due now, like everything else that is due now.
      const at = Math.max(event.at, this.#now)
      const first = next[0] === undefined ? at + 1 : Math.max(next[0].at, this.#now)
      if (at < first) next = [event]
      else if (at === first) next.push(event)
    }
    const event = next[Math.floor(this.#random.next() * next.length)]
    if (event === undefined) return undefined
    this.#timers.delete(event)
    this.#turnsInRow = 0
    this.#now = Math.max(this.#now, event.at)
    return event.happen
  }
}
