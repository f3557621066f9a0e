/** Bounds on what clients can keep busy. */
import { ServerBusy } from './errors.ts'

/** A number of things that may be open at the same time. */
export class Slots {
  readonly #what: string
  readonly #max: number
  #taken = 0

  constructor(what: string, max: number) {
    this.#what = what
    this.#max = max
  }

  /** Takes a slot and returns the function that frees it. Throws `ServerBusy`. */
  take(): () => void {
    if (this.#taken >= this.#max) throw new ServerBusy(this.#what, this.#max)
    this.#taken++
    let isHeld = true
    return () => {
      if (isHeld) this.#taken--
      isHeld = false
    }
  }

  /** Runs a function in a slot. */
  async hold<T>(work: () => Promise<T>): Promise<T> {
    const release = this.take()
    try {
      return await work()
    } finally {
      release()
    }
  }
}

interface Window {
  failures: number
  endsAt: number
}

/** How many wrong tokens an address may send in a minute, and how many addresses are watched. */
const FAILURES_MAX = 10
const WINDOW_MS = 60_000
const ADDRESSES_MAX = 10_000

/** Counts wrong tokens by the address of the client. */
export class FailedLogins {
  readonly #now: () => number
  readonly #windows = new Map<string, Window>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** How long the address must wait; 0 if it may try. */
  waitMs(address: string): number {
    const window = this.#windows.get(address)
    if (window === undefined || window.endsAt <= this.#now()) return 0
    return window.failures >= FAILURES_MAX ? window.endsAt - this.#now() : 0
  }

  add(address: string): void {
    const now = this.#now()
    const window = this.#windows.get(address)
    if (window !== undefined && window.endsAt > now) {
      window.failures++
      return
    }
    this.#windows.delete(address)
    // The oldest entry is the first: an attacker with many addresses only pushes out others.
    const [oldest] = this.#windows.keys()
    if (this.#windows.size >= ADDRESSES_MAX && oldest !== undefined) this.#windows.delete(oldest)
    this.#windows.set(address, { failures: 1, endsAt: now + WINDOW_MS })
  }
}
