import type { Timers } from '../core/ports.ts'

function always(): boolean {
  return true
}

/** A wait that can be ended early. A call of `now` before the wait is not lost. */
export class Nudge {
  readonly #timers: Timers
  #wake: (() => void) | undefined
  #pending = false

  constructor(timers: Timers) {
    this.#timers = timers
  }

  /** Ends the wait, or the next one if there is none. */
  now(): void {
    this.#pending = true
    this.#wake?.()
  }

  /**
   * Waits for `delayMs` or for `now`; with `onlyIf`, `now` ends the wait only if it returns true.
   */
  async wait(delayMs: number, { onlyIf = always } = {}): Promise<void> {
    if (this.#pending && onlyIf()) {
      this.#pending = false
      return
    }
    await new Promise<void>((resolve) => {
      const end = () => {
        timer.cancel()
        this.#wake = undefined
        resolve()
      }
      const timer = this.#timers.after(Math.max(0, delayMs), end)
      this.#wake = () => {
        if (onlyIf()) end()
      }
    })
    this.#pending = false
  }
}
