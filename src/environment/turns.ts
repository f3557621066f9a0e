/** Turns of the event loop, for long work that would otherwise block it. */
import type { Environment } from './system.ts'

/** How long work may continue before the event loop gets a turn. */
const TURN_MS_MAX = 4

/** Tells long work when to yield to the event loop. */
export class Turns {
  readonly #environment: Pick<Environment, 'clock' | 'timers'>
  #turnedAt = 0

  constructor(environment: Pick<Environment, 'clock' | 'timers'>) {
    this.#environment = environment
  }

  /** True if the event loop should get a turn now. */
  get isDue(): boolean {
    return this.#environment.clock.now() - this.#turnedAt >= TURN_MS_MAX
  }

  /** Resolves in the next turn of the event loop. */
  next(): Promise<void> {
    const { clock, timers } = this.#environment
    return new Promise((turned) =>
      timers.defer(() => {
        this.#turnedAt = clock.now()
        turned()
      }),
    )
  }
}
