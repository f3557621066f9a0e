/**
 * The doctor's rounds in a worker: at a fixed interval one worker examines a page of jobs, from
 * where the last round ended. A round reads one page, repairs nothing, and emits its findings as
 * events.
 *
 * Rounds keep their own timetable. Errors of the worker or of the last round do not postpone the
 * next one: a store in trouble is when findings are needed. A worker that dies during a round holds
 * the duty for one interval, so another worker makes a round within two intervals.
 */
import type { Timer } from '../../core/ports.ts'
import type { Doctor } from '../../doctor/doctor.ts'
import type { Environment } from '../../environment/system.ts'
import type { Store } from '../../stores/contract/store.ts'
import type { PawlEvent } from '../watching/events.ts'

/** The name of the duty in the store; one worker holds it at a time. */
const DUTY = 'checkup'

export interface CheckupParts {
  readonly worker: string
  readonly doctor: Doctor
  readonly store: Store
  readonly environment: Environment
  readonly everyMs: number
  readonly observe: (event: PawlEvent) => void
}

export class Checkup {
  readonly #parts: CheckupParts
  #timer: Timer | undefined
  #isStopped = false

  constructor(parts: CheckupParts) {
    this.#parts = parts
    this.#plan()
  }

  /** Starts no further round; a running one finishes. */
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
    const { worker, doctor, store, everyMs, observe } = this.#parts
    const { examination } = store
    try {
      const duty = await examination.takeDuty(DUTY, worker, everyMs)
      if (duty !== undefined) {
        const { findings, next } = await doctor.round(duty.cursor)
        for (const finding of findings) observe({ type: 'finding', worker, finding })
        await examination.leaveDuty(DUTY, worker, next)
      }
    } catch (error) {
      if (!this.#isStopped) observe({ type: 'error', worker, error })
    }
    this.#plan()
  }
}
