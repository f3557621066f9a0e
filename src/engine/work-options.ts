/** How to work: what a program may say of a worker, and what is used where it says nothing. */
import { callable, count, listOf, name, record } from '../core/checks.ts'
import { CommandInvalid } from '../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import { LEASE_MAX_MS } from '../core/job/fence.ts'
import type { Environment } from '../environment/system.ts'
import { type RunnableJob, stallWarningOf } from './define-job.ts'
import { type Duration, toMs } from './durations.ts'
import type { PawlEvent } from './watching/events.ts'
import type { StuckPolicy } from './worker/stuck.ts'

// biome-ignore lint/suspicious/noExplicitAny: what a handler gets is an affair of its definition
type Whatever = any

/** How to work. */
export interface WorkOptions {
  readonly id?: string
  /** What this worker runs; every kind of job that has code here if absent. */
  readonly jobs?: readonly RunnableJob<Whatever, Whatever, Whatever>[]
  readonly concurrency?: number
  readonly queues?: readonly string[]
  /** How long a lease lasts that is not renewed; 500 ms to a day, 30 seconds if absent. */
  readonly lease?: Duration
  /** The longest sleep of an idle worker that nobody wakes. */
  readonly poll?: Duration
  /** How often leases that have expired are looked for. */
  readonly recover?: Duration
  /** How long a stopping worker waits for its handlers before it tells them to stop. */
  readonly drain?: Duration
  /** Whether effects are delivered here, and how many at once; 10 if absent. */
  readonly effects?: boolean | { readonly concurrency?: number }
  /**
   * What to do about a handler that goes on five seconds after its abort. 'hold', the default,
   * leaves its slot taken; 'replace' opens a new one in its stead; 'exit' stops the worker, and
   * `worker.ended` rejects.
   */
  readonly onStuck?: StuckPolicy
  /**
   * After how long without a sign of life a handler is reported by the event `silent`. Ten minutes
   * if absent; false or 0 for never. A job type may say otherwise.
   */
  readonly stallWarning?: Duration | false
  /**
   * How often some of the jobs are looked at by the doctor; one worker at a time does it, for a
   * moment. Ten seconds if absent; false where nobody is to do it.
   */
  readonly checkup?: Duration | false
  /** Told of what happens in this worker. */
  readonly onEvent?: (event: PawlEvent) => void
}

/** What is used where options say nothing. */
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

/** The shortest lease: it must outlast a pause of the process and a slow database. */
const LEASE_MIN_MS = 500
const QUEUES_MAX = 1000
const JOBS_MAX = 10_000

function queues(values: readonly string[]): string | undefined {
  const why = listOf(values, QUEUES_MAX, name)
  return why ?? (values.length === 0 ? 'must not be empty; leave it out for all queues' : undefined)
}

/** A duration is checked where it becomes milliseconds. */
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

/** The settings that options make; throws `CommandInvalid`. */
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

/** Throws `CommandInvalid` if it is not a number of slots. */
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
