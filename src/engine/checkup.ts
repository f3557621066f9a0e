/**
 * The doctor's round in a worker: now and then a page of jobs is looked at, from where the last
 * round ended, by whichever worker gets the duty. It never repairs, and never takes longer than one
 * page takes; what it finds becomes an event, for logs and metrics.
 */
import type { Timer } from '../core/ports.ts'
import type { Doctor } from '../doctor/doctor.ts'
import type { Environment } from '../environment/system.ts'
import type { Store } from '../stores/store.ts'
import type { PawlEvent } from './events.ts'

/** The name under which stores keep who goes round. */
const DUTY = 'checkup'
/** A round that takes longer was interrupted. */
const LEASE_MS = 60_000

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
  #isStopped = false

  constructor(parts: CheckupParts) {
    this.#parts = parts
    this.#plan()
  }

  /** Something is wrong with the store: a round now would be one more who asks it. */
  defer(): void {
    this.#timer?.cancel()
    this.#plan()
  }

  /** No further round begins. */
  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  #plan(): void {
    if (this.#isStopped) return
    const { environment, everyMs } = this.#parts
    this.#timer = environment.timers.after(everyMs, () => void this.#round())
  }

  async #round(): Promise<void> {
    const { worker, doctor, store, observe } = this.#parts
    const { examination } = store
    try {
      const duty = await examination.takeDuty(DUTY, worker, LEASE_MS)
      if (duty !== undefined) {
        const { findings, next } = await doctor.round(duty.place)
        for (const finding of findings) observe({ type: 'finding', worker, finding })
        await examination.leaveDuty(DUTY, worker, next)
      }
    } catch (error) {
      // The store will be there again, or the worker itself says that it is not.
      if (!this.#isStopped) observe({ type: 'error', worker, error })
    }
    this.defer()
  }
}
