/** The options of a worker and their defaults. */
import { callable, count, listOf, name, record } from '../core/checks.ts'
import { type Duration, toMs } from '../core/durations.ts'
import { CommandInvalid } from '../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import { LEASE_MAX_MS } from '../core/job/fence.ts'
import type { Environment } from '../environment/system.ts'
import type { RunnableJob } from './define-job.ts'
import { stallWarningOf } from './stall-options.ts'
import type { PawlEvent } from './watching/events.ts'
import type { StuckPolicy } from './worker/stuck.ts'

// biome-ignore lint/suspicious/noExplicitAny: the definition decides the types of its handler
type AnyValue = any

/** The options of `work`. */
export interface WorkOptions {
  /**
   * The name of the worker in leases, lists and the ledger; unique among running workers.
   * @defaultValue `worker-` and a generated id
   */
  readonly id?: string
  /**
   * The job types that this worker runs.
   * @defaultValue all that have a handler
   */
  readonly jobs?: readonly RunnableJob<AnyValue, AnyValue, AnyValue, AnyValue, AnyValue>[]
  /**
   * How many jobs run at the same time, from 1 to 10,000.
   * @defaultValue 10
   */
  readonly concurrency?: number
  /**
   * The queues that this worker serves.
   * @defaultValue all queues
   */
  readonly queues?: readonly string[]
  /**
   * How long a lease is valid without renewal, from 500 ms to a day. Jobs of a worker that died are
   * recovered after it.
   * @defaultValue 30 seconds
   */
  readonly lease?: Duration
  /**
   * The longest wait between two claims of an idle worker.
   * @defaultValue 1 second
   */
  readonly poll?: Duration
  /**
   * How often the worker looks for expired leases.
   * @defaultValue 1 second
   */
  readonly recover?: Duration
  /**
   * How long a stopping worker waits for its handlers before it aborts them.
   * @defaultValue 25 seconds
   */
  readonly drain?: Duration
  /**
   * Whether this worker delivers effects, and how many at once.
   * @defaultValue 10 at once
   */
  readonly effects?: boolean | { readonly concurrency?: number }
  /**
   * What to do about a handler that still runs five seconds after its signal was aborted. 'hold'
   * keeps its slot occupied. 'replace' opens an additional slot. 'exit' stops the worker, and
   * `worker.ended` rejects.
   * @defaultValue `'hold'`
   */
  readonly onStuck?: StuckPolicy
  /**
   * After how long without progress, count, step or commit the event `silent` reports a handler.
   * Use false or 0 for never. A job type can override it.
   * @defaultValue 10 minutes
   */
  readonly stallWarning?: Duration | false
  /**
   * How often the doctor checks some of the jobs. One worker at a time does it. Use false for
   * never.
   * @defaultValue 10 seconds
   */
  readonly checkup?: Duration | false
  /**
   * Called for every event of this worker.
   * @defaultValue none
   */
  readonly onEvent?: (event: PawlEvent) => void
}

/** Used for absent options. */
export const DEFAULTS = {
  concurrency: 10,
  leaseMs: 30_000,
  pollMs: 1000,
  recoverMs: 1000,
  drainMs: 25_000,
  stallWarningMs: 600_000,
  checkupMs: 10_000,
}
const STUCK_ACTIONS = ['hold', 'replace', 'exit']
const CONCURRENCY_MAX = 10_000

/** A shorter lease could expire during a pause of the process or a slow query. */
const LEASE_MIN_MS = 500
const QUEUES_MAX = 1000
const JOBS_MAX = 10_000

function queues(values: readonly string[]): string | undefined {
  const why = listOf(values, QUEUES_MAX, name)
  return why ?? (values.length === 0 ? 'must not be empty; leave it out for all queues' : undefined)
}

/** Durations are checked when they are converted to milliseconds. */
const duration = unchecked

const EFFECTS: FieldChecks<{ readonly concurrency?: number }> = {
  concurrency: (value) => count(value, 1, CONCURRENCY_MAX),
}

const WORK: FieldChecks<WorkOptions> = {
  id: name,
  jobs: (values: readonly object[]) => listOf(values, JOBS_MAX, record),
  concurrency: unchecked,
  queues,
  lease: duration,
  poll: duration,
  recover: duration,
  drain: duration,
  effects: (value: WorkOptions['effects']) => {
    if (typeof value === 'object' && value !== null) {
      checkFields(value, EFFECTS, { what: 'effects', prefix: 'effects.' })
    }
    return typeof value === 'boolean' ? undefined : record(value as object)
  },
  onStuck: unchecked,
  stallWarning: duration,
  checkup: duration,
  onEvent: callable,
}

/** Applies the defaults; throws `CommandInvalid`. */
export function settingsOf(options: WorkOptions, environment: Environment) {
  checkFields(options, WORK, { what: 'options' })
  const { concurrency = DEFAULTS.concurrency } = options
  checkConcurrency('concurrency', concurrency)
  return {
    id: options.id ?? `worker-${environment.ids.next()}`,
    concurrency,
    queues: options.queues,
    leaseMs: leaseOf(options.lease),
    pollMaxMs: toMs(options.poll ?? DEFAULTS.pollMs, 'poll'),
    recoverMs: toMs(options.recover ?? DEFAULTS.recoverMs, 'recover'),
    drainMs: toMs(options.drain ?? DEFAULTS.drainMs, 'drain'),
    onStuck: stuckPolicyOf(options.onStuck),
    stallWarningMs: stallWarningOf(options.stallWarning ?? DEFAULTS.stallWarningMs),
  }
}

/** Throws `CommandInvalid` if `count` is out of range. */
export function checkConcurrency(field: string, count: number): void {
  if (!Number.isSafeInteger(count) || count < 1 || count > CONCURRENCY_MAX) {
    throw new CommandInvalid(field, `must be from 1 to ${CONCURRENCY_MAX}`)
  }
}

function leaseOf(lease: Duration = DEFAULTS.leaseMs): number {
  const leaseMs = toMs(lease, 'lease')
  if (leaseMs < LEASE_MIN_MS) {
    throw new CommandInvalid('lease', `must be ${LEASE_MIN_MS} ms or longer`)
  }
  if (leaseMs <= LEASE_MAX_MS) return leaseMs
  throw new CommandInvalid('lease', 'must be a day or shorter; a worker renews it while it runs')
}

function stuckPolicyOf(policy: StuckPolicy = 'hold'): StuckPolicy {
  if (typeof policy === 'function' || STUCK_ACTIONS.includes(policy)) return policy
  throw new CommandInvalid('onStuck', `must be ${STUCK_ACTIONS.join(', ')} or a function`)
}
