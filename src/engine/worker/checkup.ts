/**
 * The doctor's round in a worker: now and then a page of jobs is looked at, from where the last
 * round ended, by whichever worker gets the duty. It never repairs, and never takes longer than one
 * page takes; what it finds becomes an event, for logs and metrics.
 */
import type { Timer } from '../../core/ports.ts'
import { ERROR_WAIT_MS } from '../../core/worker.ts'
import type { Doctor } from '../../doctor/doctor.ts'
import type { Environment } from '../../environment/system.ts'
import type { Store } from '../../stores/store.ts'
import type { PawlEvent } from '../watching/events.ts'

/** The name under which stores keep who goes round. */
const DUTY = 'checkup'
/** A round that takes longer was interrupted. */
const LEASE_MS = 60_000
/** Longer than a worker waits before it asks again: a store that is away is asked by it alone. */
const AFTER_ERROR_MS = 2 * ERROR_WAIT_MS

/** What a round needs. */
export interface CheckupParts {
  readonly worker: string
  readonly doctor: Doctor
  readonly store: Store
  readonly environment: Environment
  readonly everyMs: number
  readonly observe: (event: PawlEvent) => void
}

/** The rounds of one worker. */
export class Checkup {
  readonly #parts: CheckupParts
  #timer: Timer | undefined
  #isGoing = false
  #isStopped = false

  constructor(parts: CheckupParts) {
    this.#parts = parts
    this.#plan(parts.everyMs)
  }

  /** Something is wrong with the store: a round now would be one more who asks it. */
  defer(): void {
    if (this.#isGoing) return
    this.#timer?.cancel()
    this.#plan(this.#afterErrorMs)
  }

  /** No further round begins. */
  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  get #afterErrorMs(): number {
    return Math.max(this.#parts.everyMs, AFTER_ERROR_MS)
  }

  #plan(delayMs: number): void {
    if (this.#isStopped) return
    this.#timer = this.#parts.environment.timers.after(delayMs, () => void this.#round())
  }

  async #round(): Promise<void> {
    const { worker, doctor, store, everyMs, observe } = this.#parts
    const { examination } = store
    let delayMs = everyMs
    this.#isGoing = true
    try {
      const duty = await examination.takeDuty(DUTY, worker, LEASE_MS)
      if (duty !== undefined) {
        const { findings, next } = await doctor.round(duty.place)
        for (const finding of findings) observe({ type: 'finding', worker, finding })
        await examination.leaveDuty(DUTY, worker, next)
      }
    } catch (error) {
      // The store will be there again, or the worker itself says that it is not.
      delayMs = this.#afterErrorMs
      if (!this.#isStopped) observe({ type: 'error', worker, error })
    }
    this.#isGoing = false
    this.#plan(delayMs)
  }
}
