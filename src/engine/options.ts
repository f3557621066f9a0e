/**
 * The options of the library, checked: an unknown option is refused and never ignored, and so is a
 * value that cannot be meant. Every interface of options has its table here, which does not compile
 * if a field is missing in it.
 */
import { abortSignal, callable, flag, listOf, name, oneOf, record } from '../core/checks.ts'
import { CommandInvalid } from '../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import type { QueueLimits } from '../stores/store.ts'
import { toMs } from './durations.ts'
import type { AnyJob } from './job-types.ts'
import type { EnqueueOptions, PawlOptions, QueueOptions } from './pawl.ts'

const JOBS_MAX = 10_000

const jobs = (values: readonly AnyJob[]) => listOf(values, JOBS_MAX, record)

/** A duration is checked where it becomes milliseconds. */
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
  // Checked with the store's own bounds.
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
  // Checked by the core, which knows the bounds.
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

/** Throws `CommandInvalid` for options of `createPawl` that are unknown or cannot be meant. */
export function checkPawlOptions(options: PawlOptions): void {
  checkFields(options, PAWL, { what: 'options' })
  if (options.store === undefined) throw new CommandInvalid('store', 'must be given')
}

/** The same for one job of several, whose transaction is given once for all of them. */
export function checkJobOptions(options: Omit<EnqueueOptions, 'tx'>): void {
  const { tx: _, ...checks } = ENQUEUE
  checkFields(options, checks, { what: 'options' })
}

/** Throws `CommandInvalid` for options of a job that are unknown or cannot be meant. */
export function checkEnqueueOptions(options: EnqueueOptions): void {
  checkFields(options, ENQUEUE, { what: 'options' })
}

/** The bounds of a queue, checked and in milliseconds. */
export function limitsOf(options: QueueOptions): QueueLimits {
  checkFields(options, QUEUE, { what: 'limits' })
  const { maxDepth, maxWait } = options
  return {
    ...(maxDepth !== undefined && { maxDepth }),
    ...(maxWait !== undefined && { maxWaitMs: maxWait === null ? null : toMs(maxWait, 'maxWait') }),
  }
}

/** When a job is due; undefined if it says nothing of it. */
export function runAtOf({ delay, runAt }: EnqueueOptions, now: number): number | undefined {
  if (runAt !== undefined && delay !== undefined) {
    throw new CommandInvalid('delay', 'must not be given together with runAt')
  }
  return delay === undefined ? runAt?.getTime() : now + toMs(delay, 'delay')
}
