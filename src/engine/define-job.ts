/**
 * Job types. One object is both the key for `enqueue` and the code that a worker runs. `implement`
 * adds the code later, so a process that only enqueues need not import it.
 */
import { callable, name as checkName, record } from '../core/checks.ts'
import { DefinitionInvalid } from '../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import { policyFor } from '../core/lifecycles/lifecycle.ts'
import { standard } from '../core/lifecycles/standard.ts'
import type { Logger } from '../core/ports.ts'
import type { JobPolicy, PolicyOverrides } from '../core/retry.ts'
import { reservedName } from '../stores/notices.ts'
import { type Duration, toMs } from './durations.ts'
import {
  type EffectDefinition,
  type Effects,
  effectsOf,
  type NoEffects,
  type Tx,
} from './effects/effects.ts'
import { type RetryOptions, retryOf } from './retry-options.ts'
import type { InputOf, OutputOf, Schema, Typed } from './schema.ts'
import type { StepFunction } from './worker/steps.ts'

/** What a handler receives. */
export interface JobContext<Input, E = Effects> {
  readonly input: Input
  /**
   * Runs a function once per job. Its result is stored as JSON, and later attempts receive the
   * stored result instead of running the function. Calls with the same name are counted: the second
   * call is the second step of that name. If the function throws, nothing is stored.
   */
  readonly step: <Result>(name: string, work: StepFunction<Result>) => Promise<Result>
  /**
   * The commit boundary. What the function writes through `tx` and the result that it returns are
   * committed in one transaction, at most once per job. The commit ends the attempt, and the return
   * value of the handler is ignored. If the handler never calls `commit`, its return value is
   * committed.
   */
  readonly commit: <Output>(work: (tx: Tx<E>) => Output | Promise<Output>) => Promise<Output>
  readonly jobId: string
  readonly type: string
  readonly queue: string
  /** Starts at 1: how many times the job was claimed, including this time. */
  readonly attempt: number
  readonly tags: readonly string[]
  /**
   * Aborted when the attempt has to stop. The reason says why: `LeaseLost`, `Cancelled`,
   * `AttemptTimeout`, `AttemptStalled`, `DeadlinePassed` or `ShuttingDown`. Later writes of the
   * attempt are rejected.
   */
  readonly signal: AbortSignal
  /** Stores the progress of the attempt, any JSON value. It is not part of the ledger. */
  readonly progress: (value: unknown) => void
  /** Adds to a counter that is recorded when the attempt ends. */
  readonly count: (name: string, by?: number) => void
  /** The logger given to `createPawl`; each line carries the job and the attempt. */
  readonly log: Logger
}

/** The code of a job type; it receives the context of one attempt. */
export type Handler<Input, Output, E = Effects> = (
  context: JobContext<Input, E>,
) => Output | Promise<Output>

/** The options of `defineJob`. */
export interface JobOptions<S extends Schema, Output, E extends Effects = NoEffects> {
  readonly name: string
  /** 'default' if absent. */
  readonly queue?: string
  /** `standard` if absent. */
  readonly lifecycle?: Lifecycle
  readonly input?: S
  /**
   * The type of the result, for processes that only enqueue and wait: `typed<T>()`. A handler with
   * another result does not compile.
   */
  readonly output?: Typed<Output>
  readonly retry?: RetryOptions
  readonly crashesMax?: number
  readonly releasesMax?: number
  /** With 'operator', a job whose worker died or lost contact waits for a person's approval. */
  readonly recovery?: JobPolicy['recovery']
  /** Whether the receiver given to `createPawl` is notified when a job ends or is parked. */
  readonly notify?: boolean
  /** Jobs with smaller numbers are claimed first; 0 if absent. */
  readonly priority?: number
  /** How long an attempt may take. A longer one is a failure that may be retried. */
  readonly timeout?: Duration
  /**
   * How long a handler may go without calling progress, count, step or commit. After that the
   * attempt is a failure that may be retried. If absent, `stallWarning` only reports the attempt.
   */
  readonly stallTimeout?: Duration
  /**
   * After how long without such a call the event `silent` is emitted; the attempt goes on. If
   * absent, the worker's `stallWarning` applies, ten minutes by default. Use false or 0 for never.
   */
  readonly stallWarning?: Duration | false
  /** The effects that commits may declare, and how each is delivered. */
  readonly effects?: E & Effects
  readonly run?: Handler<OutputOf<S>, Output, E>
}

/** A job type. */
export interface JobDefinition<Input = unknown, Parsed = unknown, Output = unknown> {
  readonly name: string
  readonly queue: string
  readonly lifecycle: Lifecycle
  readonly schema: Schema | undefined
  /** Undefined if the lifecycle's policy applies. */
  readonly policy: JobPolicy | undefined
  readonly priority: number
  readonly timeoutMs: number | undefined
  readonly stallTimeoutMs: number | undefined
  /** 0 for never; undefined if the worker's option applies. */
  readonly stallWarningMs: number | undefined
  /** The handler; undefined if this process does not have it. */
  readonly run: Handler<Parsed, Output> | undefined
  /** How effects are delivered; empty if this process does not have the functions. */
  readonly effects: ReadonlyMap<string, EffectDefinition>
  /** Returns the same job type with a handler. */
  implement<NewOutput extends Output, E extends Effects = NoEffects>(
    run: Handler<Parsed, NewOutput, E>,
    options?: { readonly effects?: E & Effects },
  ): RunnableJob<Input, Parsed, NewOutput>
  /** Carries the type of the input; has no value at run time. */
  readonly '~input'?: Input
}

/** A job type with a handler, which a worker can run. */
export interface RunnableJob<Input = unknown, Parsed = unknown, Output = unknown>
  extends JobDefinition<Input, Parsed, Output> {
  readonly run: Handler<Parsed, Output>
}

/** Defines a job type with a handler. */
export function defineJob<S extends Schema = Schema, Output = unknown, E extends Effects = Effects>(
  options: JobOptions<S, Output, E> & { readonly run: Handler<OutputOf<S>, Output, E> },
): RunnableJob<InputOf<S>, OutputOf<S>, Output>
/** Defines a job type without a handler; `implement` adds it. */
export function defineJob<S extends Schema = Schema, Output = unknown, E extends Effects = Effects>(
  options: JobOptions<S, Output, E>,
): JobDefinition<InputOf<S>, OutputOf<S>, Output>
/** Defines a job type, with or without a handler. */
export function defineJob<S extends Schema, Output, E extends Effects>(
  options: JobOptions<S, Output, E>,
): JobDefinition<InputOf<S>, OutputOf<S>, Output> {
  checkDefinition(options)
  const { name, queue = 'default', lifecycle = standard, priority = 0 } = options
  for (const [field, value] of Object.entries({ name, queue })) {
    const why = checkName(value) ?? reservedName(value)
    if (why !== undefined) throw new DefinitionInvalid(field, why)
  }
  if (!Number.isSafeInteger(priority)) {
    throw new DefinitionInvalid('priority', 'must be a whole number')
  }
  const overrides = overridesOf(options)
  const definition: JobDefinition<InputOf<S>, OutputOf<S>, Output> = {
    name,
    queue,
    lifecycle,
    schema: options.input,
    policy: overrides === undefined ? undefined : policyFor(lifecycle, overrides),
    priority,
    timeoutMs: options.timeout === undefined ? undefined : toMs(options.timeout, 'timeout'),
    stallTimeoutMs: stallTimeoutOf(options.stallTimeout),
    stallWarningMs:
      options.stallWarning === undefined ? undefined : stallWarningOf(options.stallWarning),
    run: options.run as Handler<OutputOf<S>, Output> | undefined,
    effects: effectsOf(options.effects),
    implement: (run, options = {}) => {
      checkFields(options, { effects: unchecked }, { what: 'options', refuse: definitionInvalid })
      const { effects } = options
      return {
        ...definition,
        run,
        ...(effects !== undefined && { effects: effectsOf(effects) }),
      } as RunnableJob<InputOf<S>, OutputOf<S>, never>
    },
  }
  return definition
}

const OPTIONS: FieldChecks<JobOptions<Schema, unknown>> = {
  name: unchecked,
  queue: unchecked,
  lifecycle: record,
  input: (value) => (typeof value === 'function' ? undefined : record(value)),
  output: unchecked,
  retry: unchecked,
  // Checked with the whole policy.
  crashesMax: unchecked,
  releasesMax: unchecked,
  recovery: unchecked,
  notify: unchecked,
  priority: unchecked,
  timeout: unchecked,
  stallTimeout: unchecked,
  stallWarning: unchecked,
  effects: record,
  run: callable,
}

function definitionInvalid(field: string, why: string): DefinitionInvalid {
  return new DefinitionInvalid(field, why)
}

/** Throws `DefinitionInvalid` for an unknown field or a bad value. */
function checkDefinition(options: object): void {
  checkFields(options as JobOptions<Schema, unknown>, OPTIONS, {
    what: 'options',
    refuse: definitionInvalid,
  })
}

function stallTimeoutOf(duration: Duration | undefined): number | undefined {
  const ms = duration === undefined ? undefined : toMs(duration, 'stallTimeout')
  if (ms === 0) throw new DefinitionInvalid('stallTimeout', 'must be longer than 0 ms')
  return ms
}

/** In milliseconds; 0 for never. */
export function stallWarningOf(duration: Duration | false): number {
  return duration === false ? 0 : toMs(duration, 'stallWarning')
}

function overridesOf({
  retry,
  crashesMax,
  releasesMax,
  recovery,
  notify,
}: Pick<
  JobOptions<Schema, unknown>,
  'retry' | 'crashesMax' | 'releasesMax' | 'recovery' | 'notify'
>): PolicyOverrides | undefined {
  const overrides: PolicyOverrides = {
    ...(retry !== undefined && { retry: retryOf(retry) }),
    ...(crashesMax !== undefined && { crashesMax }),
    ...(releasesMax !== undefined && { releasesMax }),
    ...(recovery !== undefined && { recovery }),
    ...(notify !== undefined && { notify }),
  }
  return Object.keys(overrides).length === 0 ? undefined : overrides
}
