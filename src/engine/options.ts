/**
 * The options of the library and their checks. Unknown options and values out of range are refused,
 * never ignored. Each interface has a table of checks that does not compile if a field is missing.
 */
import { abortSignal, callable, count, flag, listOf, name, oneOf, record } from '../core/checks.ts'
import { type Duration, toMs } from '../core/durations.ts'
import { CommandInvalid } from '../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import { shown, typeName } from '../core/format.ts'
import type { Priority } from '../core/job/priority.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { Logger } from '../core/ports.ts'
import { isReservedKey } from '../core/schedule/keys.ts'
import type { Environment } from '../environment/system.ts'
import type { PayloadOptions } from '../stores/contract/requests.ts'
import type { OnConflict, QueueLimits, Store } from '../stores/contract/store.ts'
import type { SoundnessOptions } from '../stores/soundness.ts'
import type { ConnectOptions } from './connecting.ts'
import type { AnySignal, InitialSignal } from './define-signal.ts'
import type { JoinableTx } from './effects/effects.ts'
import type { NotifyOptions } from './effects/notify.ts'
import type { AnyJob } from './job-types.ts'
import { checkRetention, type RetentionOptions } from './retention/options.ts'
import type { ScheduleDefinition } from './schedules/define-schedule.ts'
import type { StoreOptions } from './store-options.ts'
import { checkTokenOptions, type SignalTokenOptions } from './token-options.ts'
import { checkTracing, type TracingOptions } from './tracing/tracing-options.ts'
import type { PawlEvent } from './watching/events.ts'
import type { FailureInfo } from './watching/failures.ts'
import type { Metrics } from './watching/metrics.ts'

/** How to open Pawl. */
export interface PawlOptions extends PayloadOptions, ConnectOptions {
  /**
   * The database: `'sqlite:./jobs.db'`, `'sqlite::memory:'` or `'postgres://…'`; the same with
   * options, as `{ sqlite: { path } }` or `{ postgres: { connectionString, schema } }`; or an open
   * store, which you close yourself.
   */
  readonly store: string | StoreOptions | Store
  /**
   * The job types that this process knows; a worker can run those with a handler.
   * @defaultValue `[]`
   */
  readonly jobs?: readonly AnyJob[]
  /**
   * Lifecycles that this process knows besides those of its jobs, for example earlier versions
   * whose jobs it runs without migrating them.
   * @defaultValue `[]`
   */
  readonly lifecycles?: readonly Lifecycle[]
  /**
   * Limits of queues; stored, so they apply to every process.
   * @defaultValue none
   */
  readonly queues?: Readonly<Record<string, QueueOptions>>
  /**
   * Schedules; stored, so any worker of the store makes their jobs. Each is stored when Pawl opens;
   * one that has not changed writes nothing. A schedule that you leave out stays: remove it by
   * `pawl.schedules.remove`.
   * @defaultValue `[]`
   */
  readonly schedules?: readonly ScheduleDefinition[]
  /**
   * Receives a notification when a job with `notify: true` ends or is parked.
   * @defaultValue none
   */
  readonly notify?: NotifyOptions
  /**
   * Signs tokens with which people answer signals over HTTP; see `token` of the context.
   * @defaultValue none: there are no tokens
   */
  readonly signalTokens?: SignalTokenOptions
  /**
   * How long ended jobs of the types in `jobs` are kept; workers of this process remove older ones.
   * @defaultValue none: nothing is removed
   */
  readonly retention?: RetentionOptions
  /**
   * What to do if constraints or triggers of the store are missing. With 'block', claims are
   * refused until the doctor has repaired the store; with 'warn', Pawl only writes to the log.
   * @defaultValue `'block'`
   */
  readonly onFindings?: SoundnessOptions['onFindings']
  /**
   * How long a call of the store retries during outages.
   * @defaultValue 10 seconds
   */
  readonly storeTimeout?: Duration
  /**
   * The clock, timers, random numbers and ids; tests replace them.
   * @defaultValue those of the process
   */
  readonly environment?: Environment
  /**
   * Receives log lines: a message and its fields.
   * @defaultValue none
   */
  readonly logger?: Logger
  /**
   * Called with the very value that a handler or the function of an effect threw, and what it was
   * thrown for; meant for error trackers. It is called after the failure was recorded. It is not
   * awaited, and its own exceptions are logged.
   * @defaultValue none
   */
  readonly onError?: (error: unknown, failure: FailureInfo) => unknown
  /**
   * Changes each text of an error before it is stored, logged or emitted: messages, stacks and
   * codes. If it throws, the text is replaced.
   * @defaultValue none
   */
  readonly redactError?: (text: string) => string
  /**
   * Called for every event of this process, from every worker.
   * @defaultValue none
   */
  readonly onEvent?: (event: PawlEvent) => void
  /**
   * Receives measurements; `METRICS` lists their names.
   * @defaultValue none
   */
  readonly metrics?: Metrics
  /**
   * Makes spans of OpenTelemetry; needs the package `@opentelemetry/api`. True for the provider
   * that is registered globally.
   * @defaultValue `false`
   */
  readonly tracing?: boolean | TracingOptions
}

/** The limits of a queue; null removes a limit. */
export interface QueueOptions {
  /**
   * How many jobs may be ready; a further one is refused with `QueueFull`.
   * @defaultValue no limit
   */
  readonly maxDepth?: number | null
  /**
   * How long a job may be ready without being claimed; then it is failed or cancelled.
   * @defaultValue no limit
   */
  readonly maxWait?: Duration | null
  /**
   * How many jobs may run at once, over all processes. Only an option of `createPawl`; operators
   * change it with `setLimit('queue/…')`.
   * @defaultValue no limit
   */
  readonly concurrency?: number | null
}

/** The options of one job. */
export interface EnqueueOptions<G extends AnySignal = AnySignal> {
  /**
   * There is at most one job per type and key; `onConflict` decides about a second one.
   * @defaultValue none
   */
  readonly key?: string
  /**
   * What to do if a job of this type has the key: return it ('existing'), give it the new input,
   * time and priority if it has not started ('replace'), or throw `KeyTaken` ('reject').
   * @defaultValue `'existing'`
   */
  readonly onConflict?: OnConflict
  /**
   * Jobs with smaller numbers are claimed first. With `{ ahead: '2m' }` the job has the number 0
   * and is claimed as if it had been due two minutes earlier, at most a day.
   * @defaultValue that of the job type
   */
  readonly priority?: Priority
  /**
   * Starts the job after this time at the earliest.
   * @defaultValue none: at once
   */
  readonly delay?: Duration
  /**
   * The same as a point in time; use one of the two.
   * @defaultValue none: at once
   */
  readonly runAt?: Date
  /**
   * Words to find the job by, at most 32.
   * @defaultValue `[]`
   */
  readonly tags?: readonly string[]
  /**
   * How long an attempt may take.
   * @defaultValue that of the job type
   */
  readonly timeout?: Duration
  /**
   * After this time the job fails without retries.
   * @defaultValue none
   */
  readonly deadline?: Date
  /**
   * Creates the job without making it ready; `submit` does that.
   * @defaultValue `false`
   */
  readonly hold?: boolean
  /**
   * Signals that are sent in the same transaction: `[approval.of({ approved: true })]`. If a job
   * of this key exists, they are sent to it.
   * @defaultValue none
   */
  readonly signals?: readonly InitialSignal<G['name']>[]
  /**
   * A transaction of the same database: from `pawl.transaction`, from a commit, or your own.
   * @defaultValue a transaction of its own
   */
  readonly tx?: JoinableTx
  /**
   * The id of the job, a UUID.
   * @defaultValue generated
   */
  readonly jobId?: string
}

/** The options of a job that a handler enqueues. */
export interface ChildOptions extends Omit<EnqueueOptions, 'tx' | 'jobId'> {
  /**
   * Identifies the job among those that its parent enqueues; the type of the job if absent. The
   * n-th call with a name enqueues the same job in every attempt. Set it if attempts may call
   * `enqueue` in different orders.
   */
  readonly name?: string
}

/** The options of a job that a handler invokes. */
export interface InvokeOptions
  extends Pick<EnqueueOptions, 'priority' | 'tags' | 'timeout' | 'deadline'> {
  /**
   * What happens to the invoked job if this one ends before it: it is cancelled, or it goes on.
   * @defaultValue `'cancel'`
   */
  readonly onParentEnd?: 'cancel' | 'abandon'
}

/** The options of jobs that a handler invokes together. */
export interface InvokeManyOptions extends InvokeOptions {
  /**
   * How many of them may be open at once: job i starts when job i - concurrency has ended.
   * @defaultValue no limit
   */
  readonly concurrency?: number
}

const JOBS_MAX = 10_000
/** How many signals can be sent together with a job. */
const SIGNALS_MAX = 100

const jobs = (values: readonly AnyJob[]) => listOf(values, JOBS_MAX, unchecked)

/** Durations are checked when they are converted to milliseconds. */
const duration = unchecked

function date(value: Date): string | undefined {
  const isDate = value instanceof Date && !Number.isNaN(value.getTime())
  return isDate ? undefined : `must be a valid Date, not ${shown(value)}`
}

/** A store is recognised by its verbs: it may have been opened by another copy of this package. */
function store(value: PawlOptions['store']): string | undefined {
  if (typeof value === 'string') return undefined
  const { enqueue, postgres, sqlite } = (value ?? {}) as Partial<Record<string, unknown>>
  const isStore = typeof enqueue === 'function' || postgres !== undefined || sqlite !== undefined
  return isStore ? undefined : `${STORE_FORMS}, not ${notStore(value)}`
}

const STORE_FORMS =
  "must be 'sqlite:./jobs.db', 'sqlite::memory:', 'postgres://…', { sqlite }, { postgres } or an " +
  'open store'

function notStore(value: unknown): string {
  return value instanceof Promise ? 'a promise: await the store first' : typeName(value)
}

/** The checks of `createPawl`'s options, of which `createTestPawl` has most. */
export const PAWL_CHECKS: FieldChecks<PawlOptions> = {
  store,
  jobs,
  queues: record,
  schedules: (values: readonly object[]) => listOf(values, JOBS_MAX, record),
  notify: (value) => (typeof value === 'function' ? undefined : record(value)),
  signalTokens: checkTokenOptions,
  retention: checkRetention,
  onFindings: (value) => oneOf(value, ['block', 'warn']),
  environment: record,
  logger: record,
  onEvent: callable,
  onError: callable,
  redactError: callable,
  metrics: record,
  tracing: checkTracing,
  // Checked with the store's limits.
  payloadBytesMax: unchecked,
  payloadDepthMax: unchecked,
  lifecycles: (values: readonly object[]) => listOf(values, JOBS_MAX, record),
  storeTimeout: duration,
  connect: (value) => oneOf(value, ['fail', 'wait']),
  connectTimeout: duration,
  signal: abortSignal,
}

const QUEUE: FieldChecks<QueueOptions> = {
  maxDepth: unchecked,
  maxWait: duration,
  concurrency: unchecked,
}

/** Keys by which schedules find the jobs of their ticks. */
function ownKey(value: string): string | undefined {
  const why = name(value)
  if (why !== undefined || !isReservedKey(value)) return why
  return 'must not begin with "schedule/" or "schedule-run/", which are keys of schedules'
}

const ENQUEUE: FieldChecks<EnqueueOptions> = {
  key: ownKey,
  onConflict: (value) => oneOf(value, ['existing', 'replace', 'reject']),
  // The core checks these and the fields below marked `unchecked`.
  priority: unchecked,
  delay: duration,
  runAt: date,
  tags: unchecked,
  timeout: duration,
  deadline: date,
  hold: flag,
  signals: (values) => listOf(values, SIGNALS_MAX, record),
  tx: unchecked,
  jobId: unchecked,
}

/** Throws `CommandInvalid` for unknown or invalid options of `createPawl`. */
export function checkPawlOptions(options: PawlOptions): void {
  checkFields(options, PAWL_CHECKS, { what: 'options' })
  if (options.store === undefined)
    throw new CommandInvalid('store', store(undefined as never) ?? '')
}

const { tx: _tx, ...JOB } = ENQUEUE
const RULES = { what: 'options' } as const

/** The same for one of several jobs; their `tx` is an option of the whole call. */
export function checkJobOptions(options: Omit<EnqueueOptions, 'tx'>): void {
  checkFields(options, JOB, RULES)
}

/** The same for a job that a handler enqueues. */
export function checkChildOptions(options: ChildOptions): void {
  const { tx: _, jobId: __, ...checks } = ENQUEUE
  checkFields(options, { ...checks, name }, { what: 'options' })
}

const INVOKE: FieldChecks<InvokeOptions> = {
  priority: ENQUEUE.priority,
  tags: ENQUEUE.tags,
  timeout: ENQUEUE.timeout,
  deadline: ENQUEUE.deadline,
  onParentEnd: (value) => oneOf(value, ['cancel', 'abandon']),
}

const CONCURRENCY_MAX = 10_000

/** The same for a job that a handler invokes. */
export function checkInvokeOptions(options: InvokeOptions): void {
  checkFields(options, INVOKE, { what: 'options' })
}

/** The same for jobs that a handler invokes together. */
export function checkInvokeManyOptions(options: InvokeManyOptions): void {
  const concurrency = (value: number) => count(value, 1, CONCURRENCY_MAX)
  checkFields(options, { ...INVOKE, concurrency }, { what: 'options' })
}

/** Throws `CommandInvalid` for unknown or invalid options of a job. */
export function checkEnqueueOptions(options: EnqueueOptions): void {
  checkFields(options, ENQUEUE, { what: 'options' })
}

/** Checks the limits of a queue and converts durations to milliseconds. */
export function limitsOf(options: QueueOptions): QueueLimits {
  checkFields(options, QUEUE, { what: 'limits' })
  const { maxDepth, maxWait } = options
  return {
    ...(maxDepth !== undefined && { maxDepth }),
    ...(maxWait !== undefined && { maxWaitMs: maxWait === null ? null : toMs(maxWait, 'maxWait') }),
  }
}

/** When a job is due; undefined if the options do not say. Delays start from `now`. */
export function runAtOf({ delay, runAt }: EnqueueOptions, now: () => number): number | undefined {
  if (delay === undefined) return runAt?.getTime()
  if (runAt !== undefined) {
    throw new CommandInvalid('delay', 'must not be given together with runAt')
  }
  return now() + toMs(delay, 'delay')
}
