/**
 * One delivery of an effect. The user's function runs with an abort signal and a time-out, and its
 * result becomes a report for the store. If the function ignores the signal, the report is made
 * without waiting for it. Its slot stays occupied until the function ends.
 */
import { NOTE_MAX } from '../../core/checks.ts'
import { type Failure, failureOf, ownFailure, toBoundedText } from '../../core/failure.ts'
import type { Timer } from '../../core/ports.ts'
import { retryDelayMs } from '../../core/retry.ts'
import { chainOf, type Redact, type ThrownError } from '../../core/thrown.ts'
import { decodeValue } from '../../core/values.ts'
import type { Environment } from '../../environment/system.ts'
import type { EffectReport, HeldEffect } from '../../stores/contract/store.ts'
import { DeliveryTimeout, ShuttingDown } from '../errors.ts'
import { spanErrorOf } from '../tracing/attempt-trace.ts'
import { effectSpan } from '../tracing/spans.ts'
import type { Tracer } from '../tracing/tracer.ts'
import type { EffectDefinition } from './effects.ts'

/**
 * How long a function may run on after its signal is aborted, before it is reported as interrupted.
 */
const GRACE_MS = 5000
/** When to retry an effect that has no function in this process; another process may have one. */
const UNKNOWN_MS = 10_000

export interface DeliveryParts {
  readonly environment: Environment
  /** Returns the store's time, in which due times are given. */
  readonly now: () => number
  /** Changes texts of errors before they are stored. */
  readonly redact?: Redact | undefined
  /** Makes spans; absent without tracing. */
  readonly tracer?: Tracer | undefined
}

/** What is known about a failed delivery besides the text that the store keeps. */
export interface DeliveryFailure {
  readonly fingerprint?: string
  readonly thrown?: ThrownError
  /** The very value that the function threw. */
  readonly original?: unknown
}

/** A delivery, from its claim to its report. */
export class RunningDelivery {
  readonly effect: HeldEffect
  /** Resolves with the report as soon as the outcome is known. */
  readonly report: Promise<EffectReport>
  /** Resolves when the function has ended. */
  readonly ended: Promise<void>
  readonly #definition: EffectDefinition | undefined
  readonly #parts: DeliveryParts
  readonly #controller = new AbortController()
  readonly #timers: Timer[] = []
  #settle: (report: EffectReport) => void = () => {}
  #failure: DeliveryFailure | undefined
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

  /** Undefined if the delivery has not failed. */
  get failure(): DeliveryFailure | undefined {
    return this.#failure
  }

  /** Whether the delivery was reported while its function still runs. */
  get isStuck(): boolean {
    return this.#isClear && !this.#hasEnded
  }

  /** Aborts the function; after a grace period the effect is reported for a retry. */
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
      const payload = decodeValue(effect.payload)
      const { signal } = this.#controller
      await this.#traced(async () => deliver({ payload, key, jobId, name, tries, signal }))
      this.#conclude({ kind: 'delivered', effect })
    } catch (error) {
      const isStopping = this.#controller.signal.reason instanceof ShuttingDown
      const failure = isStopping ? undefined : failureOf(error, this.#failing())
      this.#conclude(failure === undefined ? this.#interrupted() : this.#failed(failure, { error }))
    }
  }

  /** Runs the function in a span, which follows the span of the commit. */
  #traced<T>(call: () => Promise<T>): Promise<T> {
    const { tracer } = this.#parts
    if (tracer === undefined) return call()
    const start = effectSpan(this.effect, tracer.after(this.effect.trace))
    return tracer.during(start, call, (error) => spanErrorOf(failureOf(error, this.#failing())))
  }

  #expire(reason: DeliveryTimeout): void {
    this.#controller.abort(reason)
    const failure = { class: 'retryable', kind: 'timeout' } as const
    this.#conclude(this.#failed(ownFailure(reason, failure, this.#failing())))
  }

  #after(delayMs: number, callback: () => void): void {
    if (!this.#isClear) this.#timers.push(this.#parts.environment.timers.after(delayMs, callback))
  }

  /** Only the first call has an effect. */
  #conclude(report: EffectReport): void {
    if (this.#isClear) return
    this.#isClear = true
    for (const timer of this.#timers) timer.cancel()
    this.#settle(report)
  }

  #failing() {
    const { redact } = this.#parts
    const { jobType, name } = this.effect
    return { type: `${jobType}/${name}`, ...(redact !== undefined && { redact }) }
  }

  #failed(failure: Failure, thrown?: { readonly error: unknown }): EffectReport {
    if (!this.#isClear) this.#failure = detailsOf(failure, thrown)
    const { environment, now } = this.#parts
    const { retry } = this.#definition as EffectDefinition
    const { effect } = this
    const error = toErrorText(chainOf(failure))
    const isHopeless = failure.class !== 'retryable' || effect.tries > retry.max
    if (isHopeless) return { kind: 'parked', effect, error }
    const spread = retryDelayMs(retry, effect.tries, environment.random.next())
    return { kind: 'retry', effect, error, runAt: now() + (failure.retryAfterMs ?? spread) }
  }

  /** The effect may have been delivered before the function stopped, so the try counts. */
  #interrupted(): EffectReport {
    const error = 'The process stopped during the delivery'
    return { kind: 'retry', effect: this.effect, error, runAt: this.#parts.now() }
  }

  /** Releases the effect: a process with another version of the code may be able to deliver it. */
  #unknown(): EffectReport {
    const { name, jobType } = this.effect
    const error = toErrorText(`This process has no effect "${name}" for job type "${jobType}"`)
    return { kind: 'released', effect: this.effect, error, runAt: this.#parts.now() + UNKNOWN_MS }
  }

  /** Parks the effect if every process that claimed it died: the delivery itself may kill it. */
  #unheard(): EffectReport {
    const error = `It was claimed ${this.effect.tries - 1} times, and the last claim has no report`
    return { kind: 'parked', effect: this.effect, error }
  }
}

function detailsOf(
  { fingerprint, thrown }: Failure,
  original: { readonly error: unknown } | undefined,
): DeliveryFailure {
  return {
    ...(fingerprint !== undefined && { fingerprint }),
    ...(thrown !== undefined && { thrown }),
    ...(original !== undefined && { original: original.error }),
  }
}

function toErrorText(message: string): string {
  // One character is reserved for the ellipsis.
  return toBoundedText(message, NOTE_MAX - 1)
}
