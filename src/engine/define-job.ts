/**
 * What a kind of job is. One object is both its key (what is enqueued) and its code (what a worker
 * runs); the code can be added elsewhere, so that a process that only enqueues need not import it.
 */
import { name as checkName } from '../core/checks.ts'
import { DefinitionInvalid } from '../core/errors.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import { policyFor } from '../core/lifecycles/lifecycle.ts'
import { standard } from '../core/lifecycles/standard.ts'
import type { JobPolicy, PolicyOverrides, RetryPolicy } from '../core/retry.ts'
import type { CommitTx } from '../stores/store.ts'
import { type Duration, toMs } from './durations.ts'
import type { InputOf, OutputOf, Schema, Typed } from './schema.ts'

/** How failures are retried, with durations as people write them. */
export type RetryOptions =
  | RetryPolicy['backoff']
  | (Omit<Partial<RetryPolicy>, 'delayMs' | 'delayMaxMs'> & {
      readonly delay?: Duration
      readonly delayMax?: Duration
    })

/** What an attempt works with. */
export interface JobContext<Input> {
  readonly input: Input
  /**
   * The commit boundary: what the function writes through `tx`, and the result that it returns,
   * become true together, once, ever. It ends the attempt; what the handler returns after it is
   * ignored. A handler that never calls it commits what it returns.
   */
  readonly commit: <Output>(work: (tx: Tx) => Output | Promise<Output>) => Promise<Output>
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
}

/** The transaction of a commit, on the database of the store. */
export type Tx = Pick<CommitTx, 'query'>

/** The code of a job. */
export type Handler<Input, Output> = (context: JobContext<Input>) => Output | Promise<Output>

/** What `defineJob` takes. */
export interface JobOptions<S extends Schema, Output> {
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
  /** Smaller numbers first; 0 if absent. */
  readonly priority?: number
  /** How long one attempt may take; passing it is a failure that may be retried. */
  readonly timeout?: Duration
  /**
   * How long an attempt may go without a sign of life of its own: progress, count, step or commit.
   * Passing it is a failure that may be retried. If absent, only the lease tells who is silent.
   */
  readonly stallTimeout?: Duration
  readonly run?: Handler<OutputOf<S>, Output>
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
  /** The code, where this process has it. */
  readonly run: Handler<Parsed, Output> | undefined
  /** The same kind of job with its code. */
  implement<NewOutput extends Output>(
    run: Handler<Parsed, NewOutput>,
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
export function defineJob<S extends Schema = Schema, Output = unknown>(
  options: JobOptions<S, Output> & { readonly run: Handler<OutputOf<S>, Output> },
): RunnableJob<InputOf<S>, OutputOf<S>, Output>
/** Defines a kind of job by its key alone; `implement` adds the code. */
export function defineJob<S extends Schema = Schema, Output = unknown>(
  options: JobOptions<S, Output>,
): JobDefinition<InputOf<S>, OutputOf<S>, Output>
/** Defines a kind of job, with or without its code. */
export function defineJob<S extends Schema, Output>(
  options: JobOptions<S, Output>,
): JobDefinition<InputOf<S>, OutputOf<S>, Output> {
  const { name, queue = 'default', lifecycle = standard, priority = 0 } = options
  for (const [field, value] of Object.entries({ name, queue })) {
    const why = checkName(value)
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
    run: options.run,
    implement: (run) => ({ ...definition, run }) as RunnableJob<InputOf<S>, OutputOf<S>, never>,
  }
  return definition
}

function stallTimeoutOf(duration: Duration | undefined): number | undefined {
  const ms = duration === undefined ? undefined : toMs(duration, 'stallTimeout')
  if (ms === 0) throw new DefinitionInvalid('stallTimeout', 'must be longer than nothing')
  return ms
}

function overridesOf<S extends Schema, O>({
  retry,
  crashesMax,
  releasesMax,
  recovery,
}: JobOptions<S, O>): PolicyOverrides | undefined {
  const overrides: PolicyOverrides = {
    ...(retry !== undefined && { retry: typeof retry === 'string' ? retry : retryOf(retry) }),
    ...(crashesMax !== undefined && { crashesMax }),
    ...(releasesMax !== undefined && { releasesMax }),
    ...(recovery !== undefined && { recovery }),
  }
  return Object.keys(overrides).length === 0 ? undefined : overrides
}

function retryOf(options: Exclude<RetryOptions, string>): Partial<RetryPolicy> {
  const { delay, delayMax, ...rest } = options
  return {
    ...rest,
    ...(delay !== undefined && { delayMs: toMs(delay, 'retry.delay') }),
    ...(delayMax !== undefined && { delayMaxMs: toMs(delayMax, 'retry.delayMax') }),
  }
}
