/**
 * Retention in a worker. One worker at a time holds the duty. It works in shifts of up to a second:
 * it takes the duty, takes steps with rests between them, and leaves the duty with its cursors. If
 * nothing is left it looks again after a minute.
 *
 * A rest is as long as the step before it. While the worker runs jobs it is six times as long, so
 * that claims lose little: removing a job takes longer than claiming it (`bench/retention.ts`).
 *
 * A worker that dies in a shift holds the duty until its lease ends. The next one repeats the steps
 * of that shift, and finds the removed jobs gone.
 */
import type { Timer } from '../../core/ports.ts'
import { LOOK, movePass, readPasses, writePasses } from '../../core/retention.ts'
import type { Environment } from '../../environment/system.ts'
import { RETENTION_DUTY } from '../../stores/contract/retention.ts'
import type { Store } from '../../stores/contract/store.ts'
import { RetentionPass } from '../retention/pass.ts'
import type { RetentionPolicy } from '../retention/policy.ts'
import type { PawlEvent } from '../watching/events.ts'

const LEASE_MS = 60_000
const SHIFT_MS = 1000
const FIRST_MS = 1000
const IDLE_MS = 60_000
/** The shortest rest between two steps. */
const REST_MIN_MS = 1
/** How many times as long as its step a rest is while the worker runs jobs. */
const REST_BUSY = 6

export interface RetainingParts {
  readonly worker: string
  readonly store: Store
  readonly environment: Environment
  readonly policy: RetentionPolicy
  /** Whether the worker runs jobs now. */
  readonly isBusy: () => boolean
  readonly observe: (event: PawlEvent) => void
}

export class Retaining {
  readonly #parts: RetainingParts
  #timer: Timer | undefined
  #wake: (() => void) | undefined
  #isStopped = false

  constructor(parts: RetainingParts) {
    this.#parts = parts
    this.#plan(FIRST_MS)
  }

  /** Starts no further step; a running one finishes. */
  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
    this.#wake?.()
  }

  #plan(afterMs: number): void {
    if (this.#isStopped) return
    const { timers } = this.#parts.environment
    this.#timer = timers.after(afterMs, () => {
      void this.#work().then((isDone) => this.#plan(isDone ? IDLE_MS : REST_MIN_MS))
    })
  }

  /** Works for one shift. Returns whether nothing is left, or another worker has the duty. */
  async #work(): Promise<boolean> {
    const { worker, store, observe } = this.#parts
    const { examination } = store
    let isDone = true
    try {
      const duty = await examination.takeDuty(RETENTION_DUTY, worker, LEASE_MS)
      if (duty === undefined) return true
      const pass = new RetentionPass(this.#parts, readPasses(duty.cursor))
      try {
        await this.#steps(pass)
      } finally {
        isDone = pass.isDone
        // By this the doctor knows that a worker looks after retention.
        const passes = movePass(pass.passes, LOOK, LOOK, store.now())
        await examination.leaveDuty(RETENTION_DUTY, worker, writePasses(passes))
        this.#report(pass)
      }
    } catch (error) {
      isDone = true
      if (!this.#isStopped) observe({ type: 'error', worker, error })
    }
    return isDone
  }

  async #steps(pass: RetentionPass): Promise<void> {
    const { clock } = this.#parts.environment
    const end = clock.now() + SHIFT_MS
    while (!this.#isStopped && !pass.isDone && clock.now() < end) {
      const tookMs = await pass.step()
      const restMs = tookMs * (this.#parts.isBusy() ? REST_BUSY : 1)
      if (!pass.isDone) await this.#rest(Math.max(REST_MIN_MS, restMs))
    }
  }

  #rest(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
      this.#timer = this.#parts.environment.timers.after(ms, resolve)
    })
  }

  #report(pass: RetentionPass): void {
    const { worker, observe } = this.#parts
    for (const { outcome, keepMs, removed, keys } of pass.reports) {
      if (removed > 0) observe({ type: 'retention', worker, outcome, keepMs, removed, keys })
    }
  }
}
