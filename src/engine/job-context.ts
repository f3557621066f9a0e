/** What a handler receives. */
import type { Duration } from '../core/durations.ts'
import type { Throttled } from '../core/failure.ts'
import type { Logger } from '../core/ports.ts'
import type { ApprovalAnswer } from './approvals.ts'
import type { AnySignal, ReceivedOf, SignalAnswer, SignalWaitOptions } from './define-signal.ts'
import type { Effects, Tx } from './effects/effects.ts'
import type { JobHandle } from './job-handle.ts'
import type { JobKey } from './job-types.ts'
import type { ChildOptions, InvokeManyOptions, InvokeOptions } from './options.ts'
import type { ChildOutcome } from './outcome.ts'
import type { ScheduleContext } from './schedules/schedule-context.ts'
import type { SignalToken, TokenOptions } from './signal-tokens.ts'
import type { IfStorable, Storable } from './storable.ts'
import type { StepFunction } from './worker/steps.ts'

/** A function whose job type is a job type of any signals as well. */
type Bivariant<Holder extends { call: unknown }> = Holder['call']

/** What every handler receives. */
export interface AttemptContext<Input, E = Effects, T extends string = never> {
  readonly input: Input
  /**
   * Runs a function once per job. Its result is stored as JSON, and later attempts receive the
   * stored result instead of running the function. Calls with the same name are counted: the second
   * call is the second step of that name. If the function throws, nothing is stored.
   */
  readonly step: <Result>(
    name: string,
    work: StepFunction<Result> & IfStorable<Result, StepFunction<Storable<Result>>>,
  ) => Promise<Result>
  /**
   * The commit boundary. What the function writes through `tx` and the result that it returns are
   * committed in one transaction, at most once per job. The commit ends the attempt, and the return
   * value of the handler is ignored. If the handler never calls `commit`, its return value is
   * committed.
   */
  readonly commit: <Output>(
    work: CommitFunction<Output, E> & IfStorable<Output, CommitFunction<Storable<Output>, E>>,
  ) => Promise<Output>
  /**
   * Enqueues a job once, however often the attempt is repeated. Calls are identified by the job
   * type, or by `options.name`, and counted: the n-th call with a name enqueues the same job in
   * every attempt, and the first call decides its input. The job is durable when this returns, and
   * is kept if the attempt fails. To enqueue a job only if this one succeeds, use `tx.enqueue` in
   * the commit.
   */
  readonly enqueue: <JobInput, JobOutput>(
    definition: JobKey<JobInput, JobOutput>,
    input: JobInput,
    options?: ChildOptions,
  ) => Promise<JobHandle<JobOutput>>
  /**
   * Ends the attempt by throwing `Snooze`: the job runs again after the delay. This is no failure
   * and spends no retry. It needs no `return`, but a `catch` around it must throw it again.
   */
  readonly snooze: (delay: Duration) => never
  /**
   * Returns an error to throw when a receiver asks for a pause, for example with status 429. The
   * throttle is closed for all jobs until then, and this job runs again after it. This is no
   * failure and spends no retry.
   */
  readonly throttled: (throttle: T, options: { readonly retryAfter: Duration }) => Throttled
  readonly jobId: string
  readonly type: string
  readonly queue: string
  /** Starts at 1: how many times the job was claimed, including this time. */
  readonly attempt: number
  readonly tags: readonly string[]
  /** The schedule that made the job, and its tick; `undefined` if none did. */
  readonly schedule: ScheduleContext | undefined
  /**
   * Aborted when the attempt has to stop. The reason says why: `LeaseLost`, `Cancelled`,
   * `AttemptTimeout`, `AttemptStalled`, `DeadlinePassed` or `ShuttingDown`. Later writes of the
   * attempt are rejected.
   */
  readonly signal: AbortSignal
  /** Stores the progress of the attempt, any value. It is not part of the ledger. */
  readonly progress: (value: unknown) => void
  /** Adds to a counter that is recorded when the attempt ends. */
  readonly count: (name: string, by?: number) => void
  /** The logger given to `createPawl`; each line carries the job and the attempt. */
  readonly log: Logger
}

/**
 * What the handler of a job receives that can wait. Its lifecycle has a state for it, as `standard`
 * has. Each of these calls ends the attempt by throwing `Suspended`, unless what it waits for is
 * there; see `sleep`.
 */
export interface WaitingContext<G extends AnySignal = never> {
  /**
   * Sleeps for a duration, or until a time. The job occupies no slot meanwhile. The attempt ends by
   * throwing `Suspended`; when the time has come, the handler starts from the top, and this call
   * returns. So everything before it must be repeatable, or be a step. The time is fixed by the
   * first call.
   */
  readonly sleep: (name: string, time: Duration | Date) => Promise<void>
  /**
   * Waits for the next signal of this kind, as `sleep` does. Signals are received in the order in
   * which they were sent, each once, also those that were sent before. The job type must declare
   * the signal.
   */
  readonly waitForSignal: Bivariant<{
    call<S extends G>(signal: S, options?: SignalWaitOptions): Promise<SignalAnswer<ReceivedOf<S>>>
  }>
  /**
   * Waits until a person approves or rejects the job, as `waitForSignal(approval)` does, and says
   * who decided. Throws `SignalUndeclared` if the job type does not declare `signals: [approval]`.
   */
  readonly waitForApproval: (options?: SignalWaitOptions) => Promise<ApprovalAnswer>
  /**
   * Makes a token with which one signal can be sent to this job over HTTP, without any other
   * credential. The n-th call for a signal allows the same use in every attempt, so that repeated
   * attempts do not multiply it. Needs the option `signalTokens` of `createPawl`.
   */
  readonly token: Bivariant<{ call(signal: G, options?: TokenOptions): SignalToken }>
  /**
   * Makes a job once, however often the attempt is repeated, waits until it has ended, and returns
   * its outcome. `unwrap` returns its output, or throws `ChildFailed`. A job that is parked has not
   * ended. If this job fails or is cancelled, the invoked one is cancelled as well.
   */
  readonly invoke: <JobInput, JobOutput>(
    name: string,
    definition: JobKey<JobInput, JobOutput>,
    input: NoInfer<JobInput>,
    options?: InvokeOptions,
  ) => Promise<ChildOutcome<JobOutput>>
  /** Makes a job for each input, as `invoke` does, and returns their outcomes in order. */
  readonly invokeMany: <JobInput, JobOutput>(
    name: string,
    definition: JobKey<JobInput, JobOutput>,
    inputs: readonly NoInfer<JobInput>[],
    options?: InvokeManyOptions,
  ) => Promise<readonly ChildOutcome<JobOutput>[]>
}

/** What the handler of a job receives that comes after others. */
export interface DependentContext<After> {
  /** The outputs of the jobs that it comes after, by name; outcomes for `settled`. */
  readonly after: After
}

/**
 * What a handler receives. With `CanWait` true, it can wait; without it, the type is what every
 * handler receives. `After` is the type of `after`, if the job type has it, and `G` are the signals
 * that it declares.
 */
export type JobContext<
  Input,
  E = Effects,
  T extends string = never,
  CanWait extends boolean = boolean,
  After = undefined,
  G extends AnySignal = never,
> = AttemptContext<Input, E, T> &
  ([CanWait] extends [true] ? WaitingContext<G> : unknown) &
  ([After] extends [undefined] ? unknown : DependentContext<After>)

/** The function of a commit. */
type CommitFunction<Output, E> = (tx: Tx<E>) => Output | Promise<Output>

/** The code of a job type; it receives the context of one attempt. */
export type Handler<
  Input,
  Output,
  E = Effects,
  T extends string = never,
  CanWait extends boolean = boolean,
  After = undefined,
  G extends AnySignal = never,
> = (context: JobContext<Input, E, T, CanWait, After, G>) => Output | Promise<Output>
