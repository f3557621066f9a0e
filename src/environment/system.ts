/**
 * The ports of the core, implemented with the machine that this process runs on. Everything that
 * needs time, random numbers or ids uses an environment, so that a test or a simulator can replace
 * it.
 */
import { randomFillSync } from 'node:crypto'
import type { Clock, HostTime, IdSource, Random, Timer, Timers } from '../core/ports.ts'
import { systemHostTime } from './host-time.ts'

/** What the stores and the engine need from outside. */
export interface Environment {
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly ids: IdSource
  /**
   * Called at named points between two writes. Not set in real processes. A test kills its process
   * there; a simulator kills its worker.
   */
  readonly crashPoint?: (name: string) => void
}

/** Returns the environment of a real process. */
export function systemEnvironment(): Environment {
  const clock = new SystemClock(systemHostTime())
  return {
    clock,
    timers: systemTimers,
    random: { next: Math.random },
    ids: new TimeOrderedIds(clock),
  }
}

/** Wall time at the start, then monotonic: a step of the machine's clock has no effect. */
class SystemClock implements Clock {
  readonly host: HostTime
  readonly #start: number

  constructor(host: HostTime) {
    this.host = host
    this.#start = host.wall() - host.elapsed()
  }

  now(): number {
    return Math.floor(this.#start + this.host.elapsed())
  }
}

/** A longer delay overflows the timer of the platform, which would then fire at once. */
const TIMER_MAX_MS = 2 ** 31 - 1

const systemTimers: Timers = {
  after(delayMs, callback) {
    let handle: NodeJS.Timeout
    const arm = (left: number) => {
      const step = Math.min(left, TIMER_MAX_MS)
      handle = setTimeout(() => (left > step ? arm(left - step) : callback()), step)
    }
    arm(delayMs)
    const timer: Timer = { cancel: () => clearTimeout(handle) }
    return timer
  },
  defer(callback) {
    setImmediate(callback)
  },
}

/**
 * UUIDs of version 7: 48 bits of time, then a counter that starts at a random value in every
 * millisecond, then random bits. Ids of one process sort in the order in which they were made.
 */
class TimeOrderedIds implements IdSource {
  readonly #clock: Clock
  readonly #pool = Buffer.alloc(8 * 256)
  #unused = 0
  #time = 0
  #counter = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  next(): string {
    if (this.#unused === 0) {
      randomFillSync(this.#pool)
      this.#unused = this.#pool.length
    }
    const end = this.#unused
    const start = end - 8
    this.#unused = start
    this.#tick(this.#pool[start + 6] as number)
    this.#pool[start] = 0x80 | ((this.#pool[start] as number) & 0x3f)
    const time = this.#time.toString(16).padStart(12, '0')
    const counter = (0x7000 | this.#counter).toString(16)
    const head = `${time.slice(0, 8)}-${time.slice(8)}-${counter}`
    const variant = this.#pool.toString('hex', start, start + 2)
    return `${head}-${variant}-${this.#pool.toString('hex', start + 2, end)}`
  }

  /** Advances time and counter; `byte` is random. */
  #tick(byte: number): void {
    const now = Math.max(this.#clock.now(), this.#time)
    if (now > this.#time) {
      this.#time = now
      // Leaves room for further ids of the same millisecond.
      this.#counter = byte << 3
    } else if (++this.#counter > 0xfff) {
      this.#time++
      this.#counter = 0
    }
  }
}
