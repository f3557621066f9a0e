/**
 * The options of the library and their checks. Unknown options and values out of range are refused,
 * never ignored. Each interface has a table of checks that does not compile if a field is missing.
 */
import { abortSignal, callable, flag, listOf, name, oneOf, record } from '../core/checks.ts'
import { CommandInvalid } from '../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { Logger } from '../core/ports.ts'
import type { Environment } from '../environment/system.ts'
import type { PayloadOptions } from '../stores/requests.ts'
import type { SoundnessOptions } from '../stores/soundness.ts'
import type { OnConflict, QueueLimits, Store } from '../stores/store.ts'
import type { ConnectOptions } from './connecting.ts'
import { type Duration, toMs } from './durations.ts'
import type { JoinableTx } from './effects/effects.ts'
import type { NotifyOptions } from './effects/notify.ts'
import type { AnyJob } from './job-types.ts'
import type { PawlEvent } from './watching/events.ts'
import type { Metrics } from './watching/metrics.ts'

/** How to open Pawl. */
export interface PawlOptions extends PayloadOptions, ConnectOptions {
  /** 'sqlite:./jobs.db', 'sqlite::memory:', 'postgres://…', or an open store. */
  readonly store: string | Store
  /** The job types that this process knows; a worker can run those with a handler. */
  readonly jobs?: readonly AnyJob[]
  /**
   * Lifecycles that this process knows besides those of its jobs, for example earlier versions
   * whose jobs it runs without migrating them.
   */
  readonly lifecycles?: readonly Lifecycle[]
  /** Limits of queues; stored, so they apply to every process. */
  readonly queues?: Readonly<Record<string, QueueOptions>>
  /** Receives a notification when a job with `notify: true` ends or is parked. */
  readonly notify?: NotifyOptions
  /**
   * What to do if constraints or triggers of the store are missing. With 'block', the default,
   * claims are refused until the doctor has repaired the store; with 'warn', Pawl only writes to
   * the log.
   */
  readonly onFindings?: SoundnessOptions['onFindings']
  /** How long a call of the store retries during outages; 10 seconds if absent. */
  readonly storeTimeout?: Duration
  readonly environment?: Environment
  readonly logger?: Logger
  /** Called for every event of this process, from every worker. */
  readonly onEvent?: (event: PawlEvent) => void
  /** Receives measurements; `METRICS` lists their names. */
  readonly metrics?: Metrics
}

/** The limits of a queue; null removes a limit. */
export interface QueueOptions {
  /** How many jobs may be ready; a further one is refused with `QueueFull`. */
  readonly maxDepth?: number | null
  /** How long a job may be ready without being claimed; then it is failed or cancelled. */
  readonly maxWait?: Duration | null
}

/** The options of one job. */
export interface EnqueueOptions {
  /** There is at most one job per type and key; `onConflict` decides about a second one. */
  readonly key?: string
  readonly onConflict?: OnConflict
  readonly priority?: number
  /** Starts the job after this time at the earliest; `runAt` is the same as a point in time. */
  readonly delay?: Duration
  readonly runAt?: Date
  readonly tags?: readonly string[]
  /** How long an attempt may take; the definition's if absent. */
  readonly timeout?: Duration
  /** After this time the job fails without retries. */
  readonly deadline?: Date
  /** Creates the job without making it ready; `submit` does that. */
  readonly hold?: boolean
  /** A transaction of the same database: from `pawl.transaction`, from a commit, or your own. */
  readonly tx?: JoinableTx
  /** A UUID; generated if absent. */
  readonly jobId?: string
}

const JOBS_MAX = 10_000

const jobs = (values: readonly AnyJob[]) => listOf(values, JOBS_MAX, record)

/** Durations are checked when they are converted to milliseconds. */
const duration = unchecked

function date(value: Date): string | undefined {
  const isDate = value instanceof Date && !Number.isNaN(value.getTime())
  return isDate ? undefined : 'must be a valid Date'
}

const PAWL: FieldChecks<PawlOptions> = {
  store: (value) => (typeof value === 'string' ? undefined : record(value)),
  jobs,
  queues: record,
  notify: (value) => (typeof value === 'function' ? undefined : record(value)),
  onFindings: (value) => oneOf(value, ['block', 'warn']),
  environment: record,
  logger: record,
  onEvent: callable,
  metrics: record,
  // Checked with the store's limits.
  payloadBytesMax: unchecked,
  payloadDepthMax: unchecked,
  lifecycles: (values: readonly object[]) => listOf(values, JOBS_MAX, record),
  storeTimeout: duration,
  connect: (value) => oneOf(value, ['fail', 'wait']),
  signal: abortSignal,
}

const QUEUE: FieldChecks<QueueOptions> = { maxDepth: unchecked, maxWait: duration }

const ENQUEUE: FieldChecks<EnqueueOptions> = {
  key: name,
  onConflict: (value) => oneOf(value, ['existing', 'replace', 'reject']),
  // The core checks these and the fields below marked `unchecked`.
  priority: unchecked,
  delay: duration,
  runAt: date,
  tags: unchecked,
  timeout: duration,
  deadline: date,
  hold: flag,
  tx: unchecked,
  jobId: unchecked,
}

/** Throws `CommandInvalid` for unknown or invalid options of `createPawl`. */
export function checkPawlOptions(options: PawlOptions): void {
  checkFields(options, PAWL, { what: 'options' })
  if (options.store === undefined) throw new CommandInvalid('store', 'must be given')
}

/** The same for one of several jobs; their `tx` is an option of the whole call. */
export function checkJobOptions(options: Omit<EnqueueOptions, 'tx'>): void {
  const { tx: _, ...checks } = ENQUEUE
  checkFields(options, checks, { what: 'options' })
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

/** When a job is due; undefined if the options do not say. */
export function runAtOf({ delay, runAt }: EnqueueOptions, now: number): number | undefined {
  if (runAt !== undefined && delay !== undefined) {
    throw new CommandInvalid('delay', 'must not be given together with runAt')
  }
  return delay === undefined ? runAt?.getTime() : now + toMs(delay, 'delay')
}
