/**
 * One delivery of an effect: its function runs with a signal and a time-out, and what comes of it
 * becomes a report for the store. A function that ignores its signal is not waited for; its place
 * stays taken until it really ends.
 */
import { NOTE_MAX } from '../../core/checks.ts'
import { classify, type Failure, toBoundedText } from '../../core/failure.ts'
import type { Timer } from '../../core/ports.ts'
import { retryDelayMs } from '../../core/retry.ts'
import type { Environment } from '../../environment/system.ts'
import type { EffectReport, HeldEffect } from '../../stores/store.ts'
import { DeliveryTimeout, ShuttingDown } from '../errors.ts'
import type { EffectDefinition } from './effects.ts'

/** How long a function may take to notice that it is to stop, before it is reported without. */
const GRACE_MS = 5000
/** When to look again at an effect that this process does not know, but another may. */
const UNKNOWN_MS = 10_000

/** What a delivery needs. */
export interface DeliveryParts {
  readonly environment: Environment
  /** The store's time, by which due times are judged. */
  readonly now: () => number
}

/** A delivery from its claim to its report. */
export class RunningDelivery {
  readonly effect: HeldEffect
  /** Resolves with what is to be reported, as soon as that is clear. */
  readonly report: Promise<EffectReport>
  /** Resolves when the function has really ended. */
  readonly ended: Promise<void>
  readonly #definition: EffectDefinition | undefined
  readonly #parts: DeliveryParts
  readonly #controller = new AbortController()
  readonly #timers: Timer[] = []
  #settle: (report: EffectReport) => void = () => {}
  #isClear = false
  #hasEnded = false

  constructor(effect: HeldEffect, definition: EffectDefinition | undefined, parts: DeliveryParts) {
    this.effect = effect
    this.#definition = definition
    this.#parts = parts
    this.report = new Promise((resolve) => {
      this.#settle = resolve
    })
    this.ended = this.#run().finally(() => {
      this.#hasEnded = true
    })
  }

  /** Whether it was reported while its function goes on. */
  get isStuck(): boolean {
    return this.#isClear && !this.#hasEnded
  }

  /** The process stops: the effect is given back, at once or after a grace. */
  stop(): void {
    this.#controller.abort(new ShuttingDown())
    this.#after(GRACE_MS, () => this.#conclude(this.#interrupted()))
  }

  async #run(): Promise<void> {
    const { effect } = this
    if (this.#definition === undefined) return this.#conclude(this.#unknown())
    const { deliver, retry, timeoutMs } = this.#definition
    if (effect.tries > retry.max + 1) return this.#conclude(this.#unheard())
    this.#after(timeoutMs, () => this.#expire(new DeliveryTimeout(effect.key, timeoutMs)))
    try {
      const { key, jobId, name, tries } = effect
      const payload = JSON.parse(effect.payload) as unknown
      await deliver({ payload, key, jobId, name, tries, signal: this.#controller.signal })
      this.#conclude({ kind: 'delivered', effect })
    } catch (error) {
      const isStopping = this.#controller.signal.reason instanceof ShuttingDown
      this.#conclude(isStopping ? this.#interrupted() : this.#failed(classify(error)))
    }
  }

  #expire(reason: DeliveryTimeout): void {
    this.#controller.abort(reason)
    this.#conclude(this.#failed({ class: 'retryable', kind: 'timeout', message: reason.message }))
  }

  #after(delayMs: number, callback: () => void): void {
    if (!this.#isClear) this.#timers.push(this.#parts.environment.timers.after(delayMs, callback))
  }

  /** The first conclusion counts. */
  #conclude(report: EffectReport): void {
    if (this.#isClear) return
    this.#isClear = true
    for (const timer of this.#timers) timer.cancel()
    this.#settle(report)
  }

  #failed(failure: Failure): EffectReport {
    const { environment, now } = this.#parts
    const { retry } = this.#definition as EffectDefinition
    const { effect } = this
    const error = toErrorText(failure.message)
    const isHopeless = failure.class !== 'retryable' || effect.tries > retry.max
    if (isHopeless) return { kind: 'parked', effect, error }
    const spread = retryDelayMs(retry, effect.tries, environment.random.next())
    return { kind: 'retry', effect, error, runAt: now() + (failure.retryAfterMs ?? spread) }
  }

  /** It may have been delivered, so the try counts. */
  #interrupted(): EffectReport {
    const error = 'The process stopped while it was delivered'
    return { kind: 'retry', effect: this.effect, error, runAt: this.#parts.now() }
  }

  /** Code of another release may know it. */
  #unknown(): EffectReport {
    const { name, jobType } = this.effect
    const error = toErrorText(`This process has no effect "${name}" of jobs of type "${jobType}"`)
    return { kind: 'released', effect: this.effect, error, runAt: this.#parts.now() + UNKNOWN_MS }
  }

  /** Each time that it was taken its process died, perhaps of it. */
  #unheard(): EffectReport {
    const error = `It was taken ${this.effect.tries - 1} times, and nothing was heard of the last`
    return { kind: 'parked', effect: this.effect, error }
  }
}

function toErrorText(message: string): string {
  // One is left for the ellipsis.
  return toBoundedText(message, NOTE_MAX - 1)
}
