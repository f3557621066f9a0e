/**
 * One attempt at a job. The attempt parses and checks the input, runs the handler with an abort
 * signal, and turns the result into a report for the store.
 *
 * An abort is a request. If the outcome is known without the handler (time-out, shutdown, or
 * cancellation after a grace period), the report is made at once, and the fence rejects what the
 * handler writes later. The slot stays occupied until the handler ends; see `isStuck`.
 */
import {
  Committed,
  DeadlinePassed,
  LeaseLost,
  ReplayMismatch,
  StaleFence,
} from '../../core/errors.ts'
import {
  type Failure,
  type FailureContext,
  failureOf,
  ownFailure,
  Snooze,
  Throttled,
} from '../../core/failure.ts'
import type { Fence } from '../../core/job/commands.ts'
import { isPastDeadline, type Job } from '../../core/job/job.ts'
import type { Timer } from '../../core/ports.ts'
import { encodeValue, notStoredIn } from '../../core/values.ts'
import type { Held, Settlement } from '../../stores/contract/store.ts'
import { isOutage, JobDamaged } from '../../stores/errors.ts'
import { assertOutside, runInside } from '../../stores/inside-commit.ts'
import type { JobDefinition } from '../define-job.ts'
import { type Effects, type EnqueueInside, type Tx, toHandlerTx } from '../effects/effects.ts'
import {
  AttemptStalled,
  AttemptTimeout,
  Cancelled,
  DependencyUnmet,
  ShuttingDown,
} from '../errors.ts'
import { afterValuesOf } from '../flows/read-after.ts'
import type { Handler } from '../job-context.ts'
import type { ScheduleContext } from '../schedules/schedule-context.ts'
import { readResult } from '../stored-values.ts'
import { commitIn, fieldIn, runIn } from '../tracing/attempt-trace.ts'
import type { AttemptParts } from './attempt-parts.ts'
import { parentOf } from './children.ts'
import { findDeadline } from './deadline.ts'
import { HandedPromises } from './handed.ts'
import { handlerContext } from './handler-context.ts'
import { HandlerTools } from './handler-tools.ts'
import { invokeJobs } from './invoking.ts'
import { LazyAbort } from './lazy-abort.ts'
import { readInput, resultTextOf } from './payloads.ts'
import type { Report, SettleReport } from './report.ts'
import { stallFailure } from './stall.ts'
import { suspendCommand } from './throttled.ts'
import { tokensOf } from './tokens.ts'
import { UsageCounters } from './usage.ts'
import { mayHaveWaited } from './waits.ts'

const PARKED = { class: 'invalid_input', kind: 'invalid_input' } as const

/** How long a handler may run on after its signal is aborted, before it is reported without it. */
const GRACE_MS = 5000

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
  readonly #usage = new UsageCounters()
  readonly #timers: Timer[] = []
  #handed: HandedPromises | undefined
  #opened: HandlerTools | undefined
  /** The job after the last step of this attempt: each step adds a fact. */
  #job: Job
  #settle: (report: Report) => void = () => {}
  #isClear = false
  /** Does not change after the outcome is known: the worker's count of free slots relies on it. */
  #isStuck = false
  #isCommitted = false
  /** Whether the last commit or step of this attempt failed because of an outage of the store. */
  #hasStoreFailed = false
  /** The last progress; a heartbeat may not have stored it yet. */
  #progress: string | undefined
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

  #advance(job: Job): void {
    if (job.seq > this.#job.seq) this.#job = job
  }

  /** Opened by the first call, because most handlers need none of it. */
  get #tools(): HandlerTools {
    this.#opened ??= new HandlerTools({
      ...this.#parts,
      held: this.held,
      fence: this.fence,
      abort: this.#abort,
      job: () => this.#job,
      inStore: (work) => this.#inStore(work),
      assertLive: (command) => this.#assertLive(command),
      onStored: (job) => this.#advance(job),
      onSuspended: (job, error) => {
        this.#conclude({ kind: 'suspended', job })
        this.#abort.abort(error)
      },
      onLost: () => this.loseLease(),
    })
    return this.#opened
  }

  /** The job with the facts of its steps; the store compares it with the stored row. */
  #heldNow(): Held {
    return { ...this.held, job: this.#job }
  }

  /** Throws if the attempt is over: a later step would be rejected or run twice. */
  #assertLive(command: string): void {
    if (this.#isCommitted) throw new Committed(this.held.job.id, command)
    assertOutside(this)
    if (this.#isClear) throw this.#abort.reason ?? new StaleFence(this.held.job.id, 'not-held')
  }

  #armLimits(): void {
    const { job } = this.held
    const { timeoutMs, deadlineAt } = job
    if (timeoutMs !== null) {
      this.#after(timeoutMs, () => this.#expire(new AttemptTimeout(job.id, timeoutMs), 'timeout'))
    }
    if (deadlineAt !== null) this.#armDeadline(deadlineAt)
    const { stallTimeoutMs } = this.#definition
    if (stallTimeoutMs !== undefined) this.#armStall(stallTimeoutMs, stallTimeoutMs)
  }

  #armDeadline(deadlineAt: number): void {
    const left = Math.max(0, deadlineAt - this.#parts.now())
    this.#after(left, () => void this.#isInTime(deadlineAt))
  }

  /**
   * Ends the job if its deadline has passed; returns whether the attempt may go on. A deadline ends
   * a job for good, so it is compared with the facts first.
   */
  async #isInTime(deadlineAt: number): Promise<boolean> {
    const { job } = this.held
    const known = await findDeadline(job, deadlineAt, this.#parts)
    if (known !== deadlineAt) this.#job = { ...this.#job, deadlineAt: known }
    const isPast = isPastDeadline({ deadlineAt: known }, this.#parts.now())
    if (isPast) this.#expire(new DeadlinePassed(job.id, known as number), 'deadline')
    else if (known !== null) this.#armDeadline(known)
    return !isPast
  }

  /** Returns whether the handler may run. Past the deadline of its job it may not. */
  async #mayStart(): Promise<boolean> {
    const { deadlineAt, execution } = this.#job
    const { store, now } = this.#parts
    const isLate = isPastDeadline(this.#job, now()) || execution?.status === 'LEASED'
    if (!isLate || deadlineAt === null) return true
    if (!(await this.#isInTime(deadlineAt))) return false
    if (execution?.status !== 'LEASED') return true
    // The claim did not start the attempt because of a damaged deadline.
    const command = { kind: 'start', fence: this.fence } as const
    const [answer] = (await store.settle([{ held: this.#heldNow(), command }])).answers
    if (answer?.kind === 'rejected') throw answer.error
    if (answer?.kind === 'done') this.#job = answer.job
    return true
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

  #stall(reason: AttemptStalled): void {
    if (this.#isClear) return
    this.#abort.abort(reason)
    const failure = stallFailure(reason, this.held.job, this.#definition.lifecycle, this.#failing())
    this.#conclude(failure === undefined ? { kind: 'lost' } : this.#failed(failure))
  }

  #expire(reason: AttemptTimeout | DeadlinePassed, kind: 'timeout' | 'deadline'): void {
    if (this.#isClear) return
    this.#abort.abort(reason)
    const failureClass = kind === 'timeout' ? 'retryable' : 'terminal'
    const failure = ownFailure(reason, { class: failureClass, kind }, this.#failing())
    this.#conclude(this.#failed(failure))
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
    this.#parts.trace?.end(report)
    this.#settle(report)
  }

  async #run(): Promise<void> {
    let hasReturned = false
    try {
      if (this.#job.deadlineAt !== null && !(await this.#mayStart())) return
      const input = await readInput(this.#definition.schema, this.held.input)
      if ('failure' in input) return this.#conclude(this.#failed(input.failure))
      // Most jobs have no key, and then no schedule.
      const find = async () => this.#parts.scheduleOf?.(this.held.job)
      const schedule = this.held.job.key === null ? undefined : await this.#inStore(find)
      const after = this.#definition.groups === undefined ? undefined : await this.#readAfter()
      const run = this.#definition.run as Handler<unknown, unknown, Effects, string, true>
      const call = () => run(this.#context(input.value, schedule, after)) as Promise<unknown>
      const output = await runIn(this.#parts.trace, call)
      if (!this.#isClear && this.#opened?.hasChildren) await this.#opened.children.settled()
      if (!this.#isClear && mayHaveWaited(this.held.job)) await this.#tools.waits.assertComplete()
      hasReturned = true
      this.#conclude(this.#committed(output))
    } catch (error) {
      this.#conclude(this.#refused(error))
    } finally {
      this.#handed?.end(hasReturned)
    }
  }

  /** The outputs of the jobs that this one comes after. */
  async #readAfter(): Promise<Readonly<Record<string, unknown>>> {
    const { id } = this.held.job
    const ends = await this.#inStore(() => this.#parts.store.flows.after(id))
    return afterValuesOf(id, this.#definition.groups ?? [], ends)
  }

  #context(input: unknown, schedule: ScheduleContext | undefined, after: object | undefined) {
    const { trace, logger } = this.#parts
    const showLife = () => this.#showLife()
    return handlerContext({
      input,
      schedule,
      after,
      job: this.held.job,
      definition: this.#definition,
      abort: this.#abort,
      logger,
      trace,
      give: (what, work) => this.#give(what, work()),
      tools: () => {
        showLife()
        return this.#tools
      },
      invoke: (asked, options) => {
        showLife()
        return invokeJobs(this.#tools.waits, this.#parts, asked, options)
      },
      token: tokensOf(this.held.job.id, this.#parts),
      enqueue: (definition, input, options) => {
        showLife()
        const { children } = this.#tools
        return this.#inStore(() => children.enqueue(definition, input, options))
      },
      commit: (work) => {
        return this.#inStore(() => commitIn(trace, work, (inSpan) => this.#commit(inSpan)))
      },
      progress: (value) => {
        showLife()
        if (this.#isClear) return
        this.#progress = encodeValue(value, this.#parts.bounds)
        this.#parts.onProgress(this.held, this.#progress)
      },
      count: (name, by) => {
        showLife()
        this.#usage.add(name, by)
      },
    })
  }

  /** Hands a promise to the handler, which may forget to await it. */
  #give<T>(what: string, work: Promise<T>): Promise<T> {
    this.#handed ??= new HandedPromises((leftover) => this.#parts.onLeftover?.(this.held, leftover))
    return this.#handed.give(what, work)
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
    if (error instanceof Snooze || error instanceof Throttled) return this.#suspended(error)
    if (error instanceof ReplayMismatch || error instanceof DependencyUnmet) {
      // Parked as input is that no retry can use: a person has to decide.
      return this.#failed(ownFailure(error, PARKED, this.#failing()))
    }
    if (error instanceof DeadlinePassed) return this.#failed(this.#deadlineFailure(error))
    return { ...this.#failed(failureOf(error, this.#failing())), thrown: { error } }
  }

  #deadlineFailure(error: DeadlinePassed): Failure {
    return ownFailure(error, { class: 'terminal', kind: 'deadline' }, this.#failing())
  }

  #failing(): FailureContext {
    const { redact } = this.#parts
    return { type: this.held.job.type, ...(redact !== undefined && { redact }) }
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

  #committed(output: unknown): Report {
    const payload = resultTextOf(output, this.held.job, this.#parts)
    const command = { kind: 'commit', fence: this.fence, ...this.#usage.field } as const
    const held = this.#heldNow()
    return this.#settlement(payload === undefined ? { held, command } : { held, command, payload })
  }

  #failed(failure: Failure): SettleReport {
    const command = { kind: 'fail', fence: this.fence, failure, ...this.#usage.field } as const
    return this.#settlement({ held: this.held, command })
  }

  #suspended(error: Snooze | Throttled): Report {
    const { held, fence } = this
    const command = suspendCommand(this.#definition, held.job, fence, error, this.#parts.now())
    return this.#settlement({ held, command })
  }

  #cancelled(): Report {
    return this.#settlement({ held: this.held, command: { kind: 'cancel', fence: this.fence } })
  }

  #released(): Report {
    return this.#settlement({ held: this.held, command: { kind: 'release', fence: this.fence } })
  }

  /** The report that replaces one that the store rejected. */
  refusedBy(error: Error): Settlement {
    const context = this.#failing()
    const isLate = error instanceof DeadlinePassed
    const invalid = { class: 'terminal', kind: 'validation' } as const
    const rejected = () => ownFailure(error, invalid, context, 'The report was rejected: ')
    const failure = isLate ? this.#deadlineFailure(error) : rejected()
    const command = { kind: 'fail', fence: this.fence, failure } as const
    return { held: this.held, command, ...fieldIn(this.#parts.trace) }
  }

  #settlement(settlement: Settlement): SettleReport {
    const progress = this.#progress
    const own = { ...settlement, ...fieldIn(this.#parts.trace) }
    return { kind: 'settle', settlement: progress === undefined ? own : { ...own, progress } }
  }

  /** Commits at most once. A repeated call returns the result of the first. */
  async #commit<Output>(work: (tx: Tx) => Output | Promise<Output>): Promise<Output> {
    const { bounds, store, enqueue } = this.#parts
    const { name, effects } = this.#definition
    const parent = parentOf(this.held.job)
    this.#showLife()
    if (this.#abort.reason instanceof JobDamaged) throw this.#abort.reason
    let made: { readonly output: Output } | undefined
    const { deadlineAt } = this.#job
    const answer = await store.commit(
      { ...this.held, job: { ...this.held.job, deadlineAt } },
      (inner) =>
        runInside(this, async () => {
          const enqueueInside: EnqueueInside = (definition, input, options) =>
            enqueue(definition, input, { ...options, tx: inner }, parent)
          const own = { name, effects, bounds, enqueueInside }
          const { tx, assertSound } = toHandlerTx(inner, own)
          const { query } = tx
          tx.query = (...values) => this.#give('tx.query', query(...values))
          const output = await work(tx)
          await assertSound()
          made = { output }
          return resultTextOf(output, this.held.job, this.#parts)
        }),
      () => {
        const progress = this.#progress
        const own = progress === undefined ? {} : { progress }
        return { ...this.#usage.field, ...own, ...fieldIn(this.#parts.trace) }
      },
    )
    if (answer.kind === 'rejected') throw answer.error
    this.#isCommitted = true
    this.#conclude({ kind: 'committed', job: answer.job })
    // The handler goes on with the result even if it could not be stored.
    const { result } = answer
    if (made !== undefined && result !== undefined && notStoredIn(result) !== undefined) {
      return made.output
    }
    return readResult(this.held.job.id, result) as Output
  }

  /** The fence of this attempt: it authorises writes to the job. */
  get fence(): Fence {
    const { attempt, execution } = this.held.job
    return { attempt, claim: execution?.claim ?? '' }
  }
}
