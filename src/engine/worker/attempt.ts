/**
 * One attempt at a job. The attempt parses and checks the input, runs the handler with an abort
 * signal, and turns the result into a report for the store.
 *
 * An abort is a request. If the outcome is known without the handler (time-out, shutdown, or
 * cancellation after a grace period), the report is made at once, and the fence rejects what the
 * handler writes later. The slot stays occupied until the handler ends; see `isStuck`.
 */
import type { JsonBounds } from '../../core/canonical-json.ts'
import { encode } from '../../core/canonical-json.ts'
import { name as checkName } from '../../core/checks.ts'
import { CommandInvalid, Committed, LeaseLost, messageOf, StaleFence } from '../../core/errors.ts'
import { classify, type Failure, toBoundedText } from '../../core/failure.ts'
import { USAGE_MAX } from '../../core/job/checks.ts'
import type { Fence, Usage } from '../../core/job/commands.ts'
import type { Job } from '../../core/job/job.ts'
import { pathOf } from '../../core/lifecycles/lifecycle.ts'
import type { Logger, Timer } from '../../core/ports.ts'
import type { Environment } from '../../environment/system.ts'
import { isOutage, JobDamaged } from '../../stores/errors.ts'
import { assertOutside, runInside } from '../../stores/inside-commit.ts'
import type { Held, Settlement, Store } from '../../stores/store.ts'
import type { Handler, JobContext, JobDefinition } from '../define-job.ts'
import { openTx, type Tx } from '../effects/effects.ts'
import {
  AttemptStalled,
  AttemptTimeout,
  Cancelled,
  DeadlinePassed,
  ShuttingDown,
} from '../errors.ts'
import { validate } from '../schema.ts'
import { jobLogger } from '../watching/log.ts'
import { LazyAbort } from './lazy-abort.ts'
import { Steps } from './steps.ts'

/** How long a handler may run on after its signal is aborted, before it is reported without it. */
const GRACE_MS = 5000

/** The outcome of an attempt, and what the store still has to record. */
export type Report =
  | { readonly kind: 'settle'; readonly settlement: Settlement }
  | { readonly kind: 'committed'; readonly job: Job }
  /** The lease is lost, so nothing can be reported. */
  | { readonly kind: 'lost' }

export interface AttemptParts {
  readonly environment: Environment
  readonly bounds: JsonBounds
  readonly store: Pick<Store, 'commit' | 'settle' | 'steps'>
  /** Returns the store's time, in which deadlines are given. */
  readonly now: () => number
  /** The deadline of a job by its facts; absent if there are none. */
  readonly deadlineBy?: (job: Job) => Promise<number | null>
  readonly onProgress: (text: string) => void
  readonly logger: Logger
}

/** One attempt, from its claim to its report. */
export class Attempt {
  readonly held: Held
  /** Resolves with the report as soon as the outcome is known. */
  readonly report: Promise<Report>
  /** Resolves when the handler has ended. */
  readonly ended: Promise<void>
  readonly #definition: JobDefinition
  readonly #parts: AttemptParts
  readonly #abort = new LazyAbort()
  /** A Map, because a counter may have any name, `constructor` included. */
  readonly #usage = new Map<string, number>()
  readonly #timers: Timer[] = []
  #steps: Steps | undefined
  /** The job after the last step of this attempt: each step adds a fact. */
  #job: Job
  #settle: (report: Report) => void = () => {}
  #isClear = false
  /** Does not change after the outcome is known: the worker's count of free slots relies on it. */
  #isStuck = false
  #isCommitted = false
  /** Whether the last commit or step of this attempt failed because of an outage of the store. */
  #hasStoreFailed = false
  /** When the handler last called progress, count, step or commit. */
  #aliveAt: number

  constructor(held: Held, definition: JobDefinition, parts: AttemptParts) {
    this.held = held
    this.#definition = definition
    this.#parts = parts
    this.#job = held.job
    this.#aliveAt = parts.environment.clock.now()
    this.report = new Promise((resolve) => {
      this.#settle = resolve
    })
    this.#armLimits()
    this.ended = this.#run()
  }

  /** Whether it was aborted before its outcome was known. Its handler may still run. */
  get isStuck(): boolean {
    return this.#isStuck
  }

  /** Time without activity of the handler; undefined if the outcome is known. */
  get silentMs(): number | undefined {
    return this.#isClear ? undefined : this.#parts.environment.clock.now() - this.#aliveAt
  }

  /** The job type's `stallWarning`; 0 for never, undefined if the worker's applies. */
  get stallWarningMs(): number | undefined {
    return this.#definition.stallWarningMs
  }

  /** To be called when the lease is lost. Later writes of the attempt are rejected. */
  loseLease(): void {
    this.#abort.abort(new LeaseLost(this.held.job.id, this.held.job.attempt))
    this.#conclude({ kind: 'lost' })
  }

  /**
   * Aborts the handler because of a cancellation. If the handler finishes anyway, its result
   * counts.
   */
  cancel(): void {
    if (this.#abort.isAborted) return
    this.#abort.abort(new Cancelled(this.held.job.id))
    this.#after(GRACE_MS, () => this.#conclude(this.#cancelled()))
  }

  /** Aborts the handler and releases the job, after the grace also if the handler still runs. */
  release(graceMs = GRACE_MS): void {
    this.#abort.abort(new ShuttingDown())
    this.#after(graceMs, () => this.#conclude(this.#released()))
  }

  #openSteps(): Steps {
    const { bounds, store: inner } = this.#parts
    const store: Pick<Store, 'settle' | 'steps'> = {
      settle: (...values) => this.#inStore(() => inner.settle(...values)),
      steps: (...values) => this.#inStore(() => inner.steps(...values)),
    }
    return new Steps({
      held: () => this.#heldNow(),
      fence: this.fence,
      bounds,
      store,
      signal: this.#abort.signal,
      assertLive: () => this.#assertLive(),
      onStored: (job) => {
        if (job.seq > this.#job.seq) this.#job = job
      },
      onLost: () => this.loseLease(),
    })
  }

  /** The job with the facts of its steps; the store compares it with the stored row. */
  #heldNow(): Held {
    return { ...this.held, job: this.#job }
  }

  /** Throws if the attempt is over: a later step would be rejected or run twice. */
  #assertLive(): void {
    if (this.#isCommitted) throw new Committed(this.held.job.id, 'step')
    assertOutside(this)
    if (this.#isClear) throw this.#abort.reason ?? new StaleFence(this.held.job.id, 'not-held')
  }

  #armLimits(): void {
    const { job } = this.held
    const { timeoutMs, deadlineAt } = job
    if (timeoutMs !== null) {
      this.#after(timeoutMs, () => this.#expire(new AttemptTimeout(job.id, timeoutMs), 'timeout'))
    }
    if (deadlineAt !== null) this.#armDeadline(deadlineAt, () => this.#passDeadline(deadlineAt))
    const { stallTimeoutMs } = this.#definition
    if (stallTimeoutMs !== undefined) this.#armStall(stallTimeoutMs, stallTimeoutMs)
  }

  #armDeadline(deadlineAt: number, callback: () => void): void {
    this.#after(Math.max(0, deadlineAt - this.#parts.now()), callback)
  }

  /**
   * A deadline ends a job for good, so that of the row is compared with that of the facts first. If
   * they differ the row is damaged, and the facts count. If they cannot be read, the row counts.
   */
  #passDeadline(deadlineAt: number): void {
    const { deadlineBy } = this.#parts
    const { job } = this.held
    const end = (at = deadlineAt) => this.#expire(new DeadlinePassed(job.id, at), 'deadline')
    const compare = (own: number | null) => {
      if (own === deadlineAt) return end()
      const fields = { event: 'job.deadline_damaged', job_id: job.id, row: deadlineAt, facts: own }
      this.#parts.logger.warn(
        fields,
        'The deadline of the row is not that of the facts, which counts. Run "pawl doctor --plan"',
      )
      if (own !== null) this.#armDeadline(own, () => end(own))
    }
    if (deadlineBy === undefined) end()
    else void deadlineBy(job).then(compare, () => end())
  }

  #showLife(): void {
    this.#aliveAt = this.#parts.environment.clock.now()
  }

  #armStall(stallTimeoutMs: number, delayMs: number): void {
    this.#after(delayMs, () => {
      const silentMs = this.#parts.environment.clock.now() - this.#aliveAt
      if (silentMs < stallTimeoutMs) this.#armStall(stallTimeoutMs, stallTimeoutMs - silentMs)
      else this.#stall(new AttemptStalled(this.held.job.id, stallTimeoutMs))
    })
  }

  /**
   * Reports a failure that may be retried, with the delay that the lifecycle sets for crashes. If
   * recovery needs an operator, or the lifecycle has no retry edge, nothing is reported: the lease
   * expires and recovery decides.
   */
  #stall(reason: AttemptStalled): void {
    if (this.#isClear) return
    this.#abort.abort(reason)
    const { lifecycle } = this.#definition
    const { recovery } = this.held.job.policy ?? lifecycle.policy
    const { delayMs } = lifecycle.crash
    const failure: Failure = { class: 'retryable', kind: 'timeout', message: reason.message }
    if (recovery === 'operator' || pathOf(lifecycle, lifecycle.held, 'retry') === undefined) {
      this.#conclude({ kind: 'lost' })
    } else if (delayMs === 'as-retry') {
      this.#conclude(this.#failed(failure))
    } else {
      this.#conclude(this.#failed({ ...failure, retryAfterMs: delayMs }))
    }
  }

  #expire(reason: AttemptTimeout | DeadlinePassed, kind: 'timeout' | 'deadline'): void {
    if (this.#isClear) return
    this.#abort.abort(reason)
    const failureClass = kind === 'timeout' ? 'retryable' : 'terminal'
    this.#conclude(this.#failed({ class: failureClass, kind, message: reason.message }))
  }

  #after(delayMs: number, callback: () => void): void {
    if (!this.#isClear) this.#timers.push(this.#parts.environment.timers.after(delayMs, callback))
  }

  /** Only the first call has an effect. */
  #conclude(report: Report): void {
    if (this.#isClear) return
    this.#isClear = true
    this.#isStuck = this.#abort.isAborted
    for (const timer of this.#timers) timer.cancel()
    this.#settle(report)
  }

  async #run(): Promise<void> {
    try {
      const input = await this.#readInput()
      if ('failure' in input) return this.#conclude(this.#failed(input.failure))
      const run = this.#definition.run as Handler<unknown, unknown>
      const output = await (run(this.#context(input.value)) as Promise<unknown>)
      this.#conclude(this.#committed(output))
    } catch (error) {
      this.#conclude(this.#refused(error))
    }
  }

  async #readInput(): Promise<{ value: unknown } | { failure: Failure }> {
    let value: unknown
    try {
      value = JSON.parse(this.held.input)
    } catch {
      return { failure: invalidInput('it is not JSON') }
    }
    const checked = await validate(this.#definition.schema, value)
    return checked.ok ? { value: checked.value } : { failure: invalidInput(checked.why) }
  }

  #context(input: unknown): JobContext<unknown> {
    const { job } = this.held
    const { id, type, queue, attempt, tags } = job
    const { logger } = this.#parts
    const abort = this.#abort
    return {
      input,
      step: (name, work) => {
        this.#showLife()
        this.#steps ??= this.#openSteps()
        return this.#steps.run(name, work)
      },
      commit: (work) => this.#inStore(() => this.#commit(work)),
      jobId: id,
      type,
      queue,
      attempt,
      tags,
      get signal() {
        return abort.signal
      },
      progress: (value) => {
        this.#showLife()
        if (!this.#isClear) this.#parts.onProgress(encode(value, this.#parts.bounds))
      },
      count: (name, by = 1) => this.#count(name, by),
      get log() {
        return jobLogger(logger, job)
      },
    }
  }

  /**
   * Throws in the handler's call, where the mistake is, and not later when the attempt is reported.
   */
  #count(name: string, by: number): void {
    this.#showLife()
    const total = (this.#usage.get(name) ?? 0) + by
    const why = checkName(name) ?? (Number.isFinite(total) ? undefined : 'must stay finite')
    if (why !== undefined) throw new CommandInvalid('count', why)
    const isFull = this.#usage.size >= USAGE_MAX && !this.#usage.has(name)
    if (isFull) throw new CommandInvalid('count', `must not have more than ${USAGE_MAX} names`)
    this.#usage.set(name, total)
  }

  /**
   * A handler threw an exception: because its signal was aborted, because the store failed, or
   * because of its own error. Only its own errors count against the failure budget. If the store
   * failed, the job is released; releases have their own budget, so this is bounded.
   */
  #refused(error: unknown): Report {
    const { reason } = this.#abort
    if (reason instanceof Cancelled) return this.#cancelled()
    if (reason instanceof ShuttingDown || this.#hasStoreFailed) return this.#released()
    return this.#failed(classify(error))
  }

  /** Calls the store, and remembers whether the call failed because of an outage. */
  async #inStore<T>(work: () => Promise<T>): Promise<T> {
    try {
      const result = await work()
      this.#hasStoreFailed = false
      return result
    } catch (error) {
      this.#hasStoreFailed = isOutage(error)
      if (error instanceof JobDamaged) this.#setAside(error)
      throw error
    }
  }

  /** The store has set the damaged job aside, so neither a failure nor a result can be recorded. */
  #setAside(damage: JobDamaged): void {
    if (this.#isClear) return
    this.#abort.abort(damage)
    this.#conclude({ kind: 'lost' })
  }

  /** If the output cannot be stored, the job fails without retries. */
  #committed(output: unknown): Report {
    try {
      const payload = encode(output ?? null, this.#parts.bounds)
      const command = { kind: 'commit', fence: this.fence, ...this.#usageField() } as const
      return this.#settlement({ held: this.#heldNow(), command, payload })
    } catch (error) {
      const message = toBoundedText(`The result cannot be stored: ${messageOf(error)}`)
      return this.#failed({ class: 'terminal', kind: 'validation', message })
    }
  }

  #failed(failure: Failure): Report {
    const command = { kind: 'fail', fence: this.fence, failure, ...this.#usageField() } as const
    return this.#settlement({ held: this.held, command })
  }

  #cancelled(): Report {
    return this.#settlement({ held: this.held, command: { kind: 'cancel', fence: this.fence } })
  }

  #released(): Report {
    return this.#settlement({ held: this.held, command: { kind: 'release', fence: this.fence } })
  }

  /** The report that replaces one that the store rejected. */
  refusedBy(error: Error): Settlement {
    const message = toBoundedText(`The report was rejected: ${error.message}`)
    const failure = { class: 'terminal', kind: 'validation', message } as const
    return { held: this.held, command: { kind: 'fail', fence: this.fence, failure } }
  }

  #settlement(settlement: Settlement): Report {
    return { kind: 'settle', settlement }
  }

  /** Commits at most once. A repeated call returns the result of the first. */
  async #commit<Output>(work: (tx: Tx) => Output | Promise<Output>): Promise<Output> {
    const { bounds, store } = this.#parts
    const { name, effects } = this.#definition
    this.#showLife()
    if (this.#abort.reason instanceof JobDamaged) throw this.#abort.reason
    const answer = await store.commit(
      this.held,
      (inner) =>
        runInside(this, async () => {
          const { tx, assertSound } = openTx(inner, name, effects, bounds)
          const output = await work(tx)
          assertSound()
          return encode(output ?? null, bounds)
        }),
      () => this.#usageField().usage,
    )
    if (answer.kind === 'rejected') throw answer.error
    this.#isCommitted = true
    this.#conclude({ kind: 'committed', job: answer.job })
    return JSON.parse(answer.result) as Output
  }

  /** The fence of this attempt: it authorises writes to the job. */
  get fence(): Fence {
    const { attempt, execution } = this.held.job
    return { attempt, claim: execution?.claim ?? '' }
  }

  #usageField(): { usage?: Usage } {
    return this.#usage.size === 0 ? {} : { usage: Object.fromEntries(this.#usage) }
  }
}

function invalidInput(why: string): Failure {
  const message = toBoundedText(`The input is invalid: ${why}`)
  return { class: 'invalid_input', kind: 'invalid_input', message }
}
