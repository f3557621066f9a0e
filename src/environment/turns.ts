/** Turns of the event loop, for work that would otherwise never wait. */
import type { Environment } from './system.ts'

/** How long work may go on before the event loop has a turn. */
const TURN_MS_MAX = 4

/** Says when others are due, and lets them. */
export class Turns {
  readonly #environment: Pick<Environment, 'clock' | 'timers'>
  #turnedAt = 0

  constructor(environment: Pick<Environment, 'clock' | 'timers'>) {
    this.#environment = environment
  }

  /** Whether the event loop has waited for long enough. */
  get isDue(): boolean {
    return this.#environment.clock.now() - this.#turnedAt >= TURN_MS_MAX
  }

  /** Resolves when the event loop has turned. */
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
