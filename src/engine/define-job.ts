/**
 * Job types. One object is both the key for `enqueue` and the code that a worker runs. `implement`
 * adds the code later, so a process that only enqueues need not import it.
 */
import { callable, name as checkName, record, reservedName } from '../core/checks.ts'
import { type Duration, toMs } from '../core/durations.ts'
import { DefinitionInvalid } from '../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import { shown } from '../core/format.ts'
import { type Priority, readPriority } from '../core/job/priority.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import { policyFor } from '../core/lifecycles/lifecycle.ts'
import { standard } from '../core/lifecycles/standard.ts'
import type { JobPolicy } from '../core/retry.ts'
import {
  type AdmissionOptions,
  type AdmissionRules,
  admissionRulesOf,
} from './admission-options.ts'
import { type AnySignal, declaredSignals, signalsOf } from './define-signal.ts'
import {
  type EffectDefinition,
  type Effects,
  effectsOf,
  type NoEffects,
} from './effects/effects.ts'
import {
  type AfterGroup,
  type AfterOptions,
  type AfterValues,
  afterGroupsOf,
} from './flows/after.ts'
import type { Handler } from './job-context.ts'
import { type GroupOptions, groupPartOf } from './limits/group.ts'
import {
  type ConcurrencyLimit,
  type JobLimits,
  jobLimitsOf,
  type OneOrMore,
  type ThrottleOptions,
} from './limits/job-limits.ts'
import { type KeepOptions, type OwnKeepTimes, ownKeepTimesOf } from './retention/options.ts'
import { overridesOf, type RetryOptions } from './retry-options.ts'
import type { InputOf, OutputOf, Schema, Typed } from './schema.ts'
import { stallTimeoutOf, stallWarningOf } from './stall-options.ts'
import type { IfStorable, Storable } from './storable.ts'

/** The options of `defineJob`. */
export interface JobOptions<
  S extends Schema,
  Output,
  E extends Effects = NoEffects,
  T extends string = string,
  CanWait extends boolean = boolean,
  A extends AfterOptions | undefined = undefined,
  G extends AnySignal = AnySignal,
> extends AdmissionOptions<OutputOf<S>> {
  /** The name of the job type; jobs are stored under it, so it must not change. */
  readonly name: string
  /**
   * The queue of its jobs; workers can serve some queues only.
   * @defaultValue `'default'`
   */
  readonly queue?: string
  /**
   * The states of its jobs and the edges between them.
   * @defaultValue `standard`
   */
  readonly lifecycle?: Lifecycle<string, CanWait>
  /**
   * The schema of the input, any Standard Schema, or `typed<T>()` for a type that is not checked.
   * @defaultValue any value
   */
  readonly input?: S
  /**
   * The type of the result, for processes that only enqueue and wait: `typed<T>()`. A handler with
   * another result does not compile.
   * @defaultValue the handler's
   */
  readonly output?: Typed<Output>
  /**
   * How often and when a failed attempt is repeated; see `retry` below.
   * @defaultValue that of the lifecycle: 3 retries, 1 second apart
   */
  readonly retry?: RetryOptions
  /**
   * How many attempts may end by the death of their worker before the job is parked.
   * @defaultValue 3
   */
  readonly crashesMax?: number
  /**
   * How many attempts a worker may release, for example when it stops, before the job is parked.
   * @defaultValue 100
   */
  readonly releasesMax?: number
  /**
   * With 'operator', a job whose worker died or lost contact waits for a person's approval.
   * @defaultValue `'automatic'`
   */
  readonly recovery?: JobPolicy['recovery']
  /**
   * Whether the receiver given to `createPawl` is notified when a job ends or is parked.
   * @defaultValue `false`
   */
  readonly notify?: boolean
  /**
   * Jobs with smaller numbers are claimed first. With `{ ahead: '2m' }` a job has the number 0 and
   * is claimed as if it had been due two minutes earlier, at most a day.
   * @defaultValue 0
   */
  readonly priority?: Priority
  /**
   * How long an attempt may take. A longer one is a failure that may be retried.
   * @defaultValue no limit
   */
  readonly timeout?: Duration
  /**
   * How long a handler may go without calling progress, count, step or commit. After that the
   * attempt is a failure that may be retried.
   * @defaultValue none: `stallWarning` reports it
   */
  readonly stallTimeout?: Duration
  /**
   * After how long without such a call the event `silent` is emitted; the attempt goes on. Use
   * false or 0 for never.
   * @defaultValue that of the worker
   */
  readonly stallWarning?: Duration | false
  /**
   * How many of its jobs may run at once, over all processes: a number for the type, numbers for
   * keys of the input, and limits of `defineLimit`. A job starts only if each has room.
   * @defaultValue no limit
   */
  readonly concurrency?: OneOrMore<ConcurrencyLimit<OutputOf<S>>>
  /**
   * How many of its jobs may start in a period, over all processes.
   * @defaultValue no limit
   */
  readonly throttle?: OneOrMore<ThrottleOptions<OutputOf<S>, T>>
  /**
   * How long ended jobs of this type are kept; times that are not given are those of `createPawl`.
   * @defaultValue that of `createPawl`
   */
  readonly retention?: KeepOptions
  /**
   * Jobs with the same key are a group. The groups of a queue take turns, so that one with many
   * jobs does not keep the others waiting. With `order: 'strict'`, the jobs of a group run one at a
   * time, in the order in which they were enqueued.
   * @defaultValue no group
   */
  readonly group?: GroupOptions<OutputOf<S>>
  /**
   * The effects that commits may declare, and how each is delivered.
   * @defaultValue none
   */
  readonly effects?: E & Effects
  /**
   * The job types that its jobs come after, by name: `invoice` for one job, `[render]` for any
   * number, `settled(notify)` if it may also fail. Its jobs are made by `pawl.flow` alone, and the
   * handler receives the outputs as `after`.
   * @defaultValue none
   */
  readonly after?: A
  /**
   * The signals that its jobs can receive. Others do not compile, neither in the handler nor in
   * `handle.signal`.
   * @defaultValue none
   */
  readonly signals?: readonly G[]
  /**
   * The handler. Leave it out in processes that only enqueue.
   * @defaultValue none
   */
  readonly run?: Handler<OutputOf<S>, Output, E, T, CanWait, AfterValues<A>, G>
}

/** A job type. */
export interface JobDefinition<
  Input = unknown,
  Parsed = unknown,
  Output = unknown,
  CanWait extends boolean = boolean,
  A extends AfterOptions | undefined = undefined,
  out G extends AnySignal = AnySignal,
> {
  readonly name: string
  readonly queue: string
  readonly lifecycle: Lifecycle<string, CanWait>
  readonly schema: Schema | undefined
  /** Undefined if the lifecycle's policy applies. */
  readonly policy: JobPolicy | undefined
  readonly priority: number
  /** By how much its jobs are ahead of others with the same number. */
  readonly aheadMs: number
  readonly timeoutMs: number | undefined
  readonly stallTimeoutMs: number | undefined
  /** 0 for never; undefined if the worker's option applies. */
  readonly stallWarningMs: number | undefined
  /** Undefined if the type has neither `rateLimit`, `debounce` nor `singleton`. */
  readonly admission: AdmissionRules | undefined
  /** Undefined if the option `retention` of `createPawl` applies. */
  readonly retention: OwnKeepTimes | undefined
  /** The handler; undefined if this process does not have it. */
  readonly run: Handler<Parsed, Output, Effects, string, true, undefined, AnySignal> | undefined
  /** The signals that its jobs can receive. */
  readonly signals: readonly G[]
  /** Undefined if it has neither limits nor throttles. */
  readonly limits: JobLimits | undefined
  /** How effects are delivered; empty if this process does not have the functions. */
  readonly effects: ReadonlyMap<string, EffectDefinition>
  /** What its jobs come after; undefined if they come after nothing. */
  readonly after: A
  /** The same, checked, in the order of the names. @internal */
  readonly groups: readonly AfterGroup[] | undefined
  /** Returns the same job type with a handler. */
  implement<NewOutput extends Output, E extends Effects = NoEffects>(
    run: Handler<Parsed, NewOutput, E, string, CanWait, AfterValues<A>, G> &
      IfStorable<
        NewOutput,
        Handler<Parsed, Storable<NewOutput>, E, string, CanWait, AfterValues<A>, G>
      >,
    options?: { readonly effects?: E & Effects },
  ): RunnableJob<Input, Parsed, NewOutput, CanWait, A, G>
  /** Carries the type of the input; has no value at run time. */
  readonly '~input'?: Input
}

/** A job type with a handler, which a worker can run. */
export interface RunnableJob<
  Input = unknown,
  Parsed = unknown,
  Output = unknown,
  CanWait extends boolean = boolean,
  A extends AfterOptions | undefined = undefined,
  out G extends AnySignal = AnySignal,
> extends JobDefinition<Input, Parsed, Output, CanWait, A, G> {
  readonly run: Handler<Parsed, Output, Effects, string, true, undefined, AnySignal>
}

/** Rejects a schema whose input cannot be stored, and a handler whose result cannot be. */
type StorableJob<S extends Schema, Output> = IfStorable<
  InputOf<S>,
  { readonly input?: Schema<Storable<InputOf<S>>> }
> &
  IfStorable<
    Output,
    {
      readonly run?: Handler<
        OutputOf<S>,
        Storable<Output>,
        Effects,
        string,
        boolean,
        undefined,
        AnySignal
      >
    }
  >

/** Defines a job type with a handler. */
export function defineJob<
  S extends Schema = Schema,
  Output = unknown,
  E extends Effects = Effects,
  const T extends string = never,
  CanWait extends boolean = true,
  A extends AfterOptions | undefined = undefined,
  G extends AnySignal = never,
>(
  options: StorableJob<S, Output> &
    ({ readonly debounce?: undefined } | { readonly singleton?: undefined }) &
    JobOptions<S, Output, E, T, CanWait, A, G> & {
      readonly run: Handler<OutputOf<S>, Output, E, T, CanWait, AfterValues<A>, G>
    },
): RunnableJob<InputOf<S>, OutputOf<S>, Output, CanWait, A, G>
/** Defines a job type without a handler; `implement` adds it. */
export function defineJob<
  S extends Schema = Schema,
  Output = unknown,
  E extends Effects = Effects,
  const T extends string = never,
  CanWait extends boolean = true,
  A extends AfterOptions | undefined = undefined,
  G extends AnySignal = never,
>(
  options: StorableJob<S, Output> &
    ({ readonly debounce?: undefined } | { readonly singleton?: undefined }) &
    JobOptions<S, Output, E, T, CanWait, A, G>,
): JobDefinition<InputOf<S>, OutputOf<S>, Output, CanWait, A, G>
/** Defines a job type, with or without a handler. */
export function defineJob<
  S extends Schema,
  Output,
  E extends Effects,
  T extends string,
  CanWait extends boolean,
  A extends AfterOptions | undefined,
>(
  options: JobOptions<S, Output, E, T, CanWait, A, AnySignal>,
): JobDefinition<InputOf<S>, OutputOf<S>, Output, CanWait, A> {
  try {
    return define(options)
  } catch (error) {
    throw error instanceof DefinitionInvalid ? ofJobType(options?.name, error) : error
  }
}

/** A program has many definitions, so the error names the one that is wrong. */
function ofJobType(name: unknown, { details, hint }: DefinitionInvalid): DefinitionInvalid {
  const isNamed = typeof name === 'string' && name !== ''
  const what = isNamed ? `job type ${shown(name)}` : 'a job type without a name'
  const isOwn = hint !== `Change the definition of ${details.what}.`
  const why = `${details.what}: ${details.why}`
  return new DefinitionInvalid(what, why, isOwn ? hint : undefined)
}

function define<
  S extends Schema,
  Output,
  E extends Effects,
  T extends string,
  CanWait extends boolean,
  A extends AfterOptions | undefined,
>(
  options: JobOptions<S, Output, E, T, CanWait, A, AnySignal>,
): JobDefinition<InputOf<S>, OutputOf<S>, Output, CanWait, A> {
  type Defined = JobDefinition<InputOf<S>, OutputOf<S>, Output, CanWait, A>
  checkDefinition(options)
  const { name, queue = 'default', priority: given = 0 } = options
  const lifecycle = options.lifecycle ?? (standard as Lifecycle<string, boolean> as never)
  for (const [field, value] of Object.entries({ name, queue })) {
    const why = checkName(value) ?? reservedName(value)
    if (why !== undefined) throw new DefinitionInvalid(field, why)
  }
  const { priority, aheadMs } = readPriority(given, DefinitionInvalid)
  if (!Number.isSafeInteger(priority)) {
    throw new DefinitionInvalid('priority', 'must be a whole number')
  }
  const overrides = overridesOf(options)
  const definition: Defined = {
    name,
    queue,
    lifecycle,
    schema: options.input,
    policy: overrides === undefined ? undefined : policyFor(lifecycle, overrides),
    priority,
    aheadMs,
    timeoutMs:
      options.timeout === undefined
        ? undefined
        : toMs(options.timeout, 'timeout', DefinitionInvalid),
    stallTimeoutMs: stallTimeoutOf(options.stallTimeout),
    stallWarningMs:
      options.stallWarning === undefined
        ? undefined
        : stallWarningOf(options.stallWarning, DefinitionInvalid),
    run: options.run as Defined['run'],
    after: options.after as A,
    groups: afterGroupsOf(options.after),
    limits: jobLimitsOf(
      name,
      options.concurrency,
      options.throttle,
      groupPartOf(name, queue, options.group),
    ),
    admission: admissionRulesOf(options),
    retention: ownKeepTimesOf(options.retention),
    effects: effectsOf(options.effects),
    signals: signalsOf(options.signals),
    implement: (run, options = {}) => {
      checkFields(options, { effects: unchecked }, { what: 'options', refuse: definitionInvalid })
      const { effects } = options
      return {
        ...definition,
        run,
        ...(effects !== undefined && { effects: effectsOf(effects) }),
      } as RunnableJob<InputOf<S>, OutputOf<S>, never, CanWait, A>
    },
  }
  return definition
}

/** Some libraries make schemas that are functions. */
const schema = (value: object) => (typeof value === 'function' ? undefined : record(value))

const OPTIONS: FieldChecks<JobOptions<Schema, unknown>> = {
  name: unchecked,
  queue: unchecked,
  lifecycle: lifecycleOption,
  input: schema,
  output: schema,
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
  // Checked part by part.
  concurrency: unchecked,
  throttle: unchecked,
  rateLimit: record,
  debounce: record,
  singleton: record,
  retention: unchecked,
  group: unchecked,
  effects: record,
  after: record,
  signals: declaredSignals,
  run: callable,
}

function definitionInvalid(field: string, why: string, hint?: string): DefinitionInvalid {
  return new DefinitionInvalid(field, why, hint)
}

function lifecycleOption(value: unknown): string | undefined {
  if (typeof value !== 'string') return record(value as object)
  return `must be a lifecycle, not the name ${shown(value)}: import it from 'pawl/rules'`
}

/** Throws `DefinitionInvalid` for an unknown field or a bad value. */
function checkDefinition(options: object): void {
  checkFields(options as JobOptions<Schema, unknown>, OPTIONS, {
    what: 'options',
    refuse: definitionInvalid,
  })
}
