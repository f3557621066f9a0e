/**
 * What a kind of job is. One object is both its key (what is enqueued) and its code (what a worker
 * runs); the code can be added elsewhere, so that a process that only enqueues need not import it.
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

/** What an attempt works with. */
export interface JobContext<Input, E = Effects> {
  readonly input: Input
  /**
   * Does something once: the result, as JSON, is remembered, and a later attempt is given it
   * instead of doing it again. A step of the same name is the next one of that name. What throws is
   * not remembered.
   */
  readonly step: <Result>(name: string, work: StepFunction<Result>) => Promise<Result>
  /**
   * The commit boundary: what the function writes through `tx`, and the result that it returns,
   * become true together, once, ever. It ends the attempt; what the handler returns after it is
   * ignored. A handler that never calls it commits what it returns.
   */
  readonly commit: <Output>(work: (tx: Tx<E>) => Output | Promise<Output>) => Promise<Output>
  readonly jobId: string
  readonly type: string
  readonly queue: string
  /** From 1: how many leases this job has had, this one included. */
  readonly attempt: number
  readonly tags: readonly string[]
  /**
   * Aborted when the attempt is no longer wanted; its reason says why: `LeaseLost`, `Cancelled`,
   * `AttemptTimeout`, `AttemptStalled`, `DeadlinePassed` or `ShuttingDown`. What the attempt writes
   * after that is refused.
   */
  readonly signal: AbortSignal
  /** Tells how far the attempt is; any JSON. Kept beside the job, not in its ledger. */
  readonly progress: (value: unknown) => void
  /** Adds to a number that is recorded with the end of the attempt. */
  readonly count: (name: string, by?: number) => void
  /** The logger that was given to `createPawl`; its lines say which job and attempt they are of. */
  readonly log: Logger
}

/** The code of a job. */
export type Handler<Input, Output, E = Effects> = (
  context: JobContext<Input, E>,
) => Output | Promise<Output>

/** What `defineJob` takes. */
export interface JobOptions<S extends Schema, Output, E extends Effects = NoEffects> {
  readonly name: string
  /** 'default' if absent. */
  readonly queue?: string
  /** `standard` if absent. */
  readonly lifecycle?: Lifecycle
  readonly input?: S
  /**
   * The type of what the code gives, for processes that only enqueue and wait: `typed<T>()`. Code
   * that gives anything else does not compile.
   */
  readonly output?: Typed<Output>
  readonly retry?: RetryOptions
  readonly crashesMax?: number
  readonly releasesMax?: number
  /** With 'operator' a job whose worker went silent waits for a person's approval. */
  readonly recovery?: JobPolicy['recovery']
  /** Whether the end of a job, and its parking, are told to who is given to `createPawl`. */
  readonly notify?: boolean
  /** Smaller numbers first; 0 if absent. */
  readonly priority?: number
  /** How long one attempt may take; passing it is a failure that may be retried. */
  readonly timeout?: Duration
  /**
   * How long an attempt may go without a sign of life of its own: progress, count, step or commit.
   * Passing it is a failure that may be retried. If absent, the attempt is only reported, after
   * `stallWarning`.
   */
  readonly stallTimeout?: Duration
  /**
   * After how long without such a sign the attempt is reported as `silent`; nothing else happens to
   * it. What the worker says if absent, which is ten minutes by default; false or 0 for never.
   */
  readonly stallWarning?: Duration | false
  /** What commits may declare, and how each is delivered. */
  readonly effects?: E & Effects
  readonly run?: Handler<OutputOf<S>, Output, E>
}

/** A kind of job. */
export interface JobDefinition<Input = unknown, Parsed = unknown, Output = unknown> {
  readonly name: string
  readonly queue: string
  readonly lifecycle: Lifecycle
  readonly schema: Schema | undefined
  /** Nothing where the lifecycle's own policy holds. */
  readonly policy: JobPolicy | undefined
  readonly priority: number
  readonly timeoutMs: number | undefined
  readonly stallTimeoutMs: number | undefined
  /** 0 for never; nothing where the worker decides. */
  readonly stallWarningMs: number | undefined
  /** The code, where this process has it. */
  readonly run: Handler<Parsed, Output> | undefined
  /** What delivers its effects, where this process has it. */
  readonly effects: ReadonlyMap<string, EffectDefinition>
  /** The same kind of job with its code. */
  implement<NewOutput extends Output, E extends Effects = NoEffects>(
    run: Handler<Parsed, NewOutput, E>,
    options?: { readonly effects?: E & Effects },
  ): RunnableJob<Input, Parsed, NewOutput>
  /** Carries the type of the input; never there. */
  readonly '~input'?: Input
}

/** A kind of job with its code: what a worker can run. */
export interface RunnableJob<Input = unknown, Parsed = unknown, Output = unknown>
  extends JobDefinition<Input, Parsed, Output> {
  readonly run: Handler<Parsed, Output>
}

/** Defines a kind of job with its code. */
export function defineJob<S extends Schema = Schema, Output = unknown, E extends Effects = Effects>(
  options: JobOptions<S, Output, E> & { readonly run: Handler<OutputOf<S>, Output, E> },
): RunnableJob<InputOf<S>, OutputOf<S>, Output>
/** Defines a kind of job by its key alone; `implement` adds the code. */
export function defineJob<S extends Schema = Schema, Output = unknown, E extends Effects = Effects>(
  options: JobOptions<S, Output, E>,
): JobDefinition<InputOf<S>, OutputOf<S>, Output>
/** Defines a kind of job, with or without its code. */
export function defineJob<S extends Schema, Output, E extends Effects>(
  options: JobOptions<S, Output, E>,
): JobDefinition<InputOf<S>, OutputOf<S>, Output> {
  checkDefinition(options)
  const { name, queue = 'default', lifecycle = standard, priority = 0 } = options
  for (const [field, value] of Object.entries({ name, queue })) {
    const why = checkName(value) ?? reservedName(value)
    if (why !== undefined) throw new DefinitionInvalid(field, why)
  }
  if (!Number.isSafeInteger(priority)) throw new DefinitionInvalid('priority', 'must be whole')
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

/** An unknown field is refused, with the error of every other fault in a definition. */
function checkDefinition(options: object): void {
  checkFields(options as JobOptions<Schema, unknown>, OPTIONS, {
    what: 'options',
    refuse: definitionInvalid,
  })
}

function stallTimeoutOf(duration: Duration | undefined): number | undefined {
  const ms = duration === undefined ? undefined : toMs(duration, 'stallTimeout')
  if (ms === 0) throw new DefinitionInvalid('stallTimeout', 'must be longer than nothing')
  return ms
}

/** A time after which silence is reported, in milliseconds; 0 for never. */
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
