/** Sleeping until a time has passed or somebody has a reason to wake the sleeper. */
import type { Timers } from '../core/ports.ts'

function always(): boolean {
  return true
}

/** A sleeper, and how to wake it. A nudge that comes before the sleep is not lost. */
export class Nudge {
  readonly #timers: Timers
  #wake: (() => void) | undefined
  #pending = false

  constructor(timers: Timers) {
    this.#timers = timers
  }

  /** Wakes the sleeper, or keeps it from falling asleep. */
  now(): void {
    this.#pending = true
    this.#wake?.()
  }

  /** Sleeps; with `onlyIf` a nudge wakes only where that is true. */
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
