/** How to work: what a program may say of a worker, and what is used where it says nothing. */
import { CommandInvalid } from '../core/errors.ts'
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
  /** How long a lease lasts that is not renewed. */
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

/** The settings that options make; throws `CommandInvalid`. */
export function settingsOf(options: WorkOptions, environment: Environment) {
  const { concurrency = DEFAULTS.concurrency } = options
  checkConcurrency('concurrency', concurrency)
  return {
    id: options.id ?? `worker-${environment.ids.next()}`,
    concurrency,
    queues: options.queues,
    leaseMs: toMs(options.lease ?? DEFAULTS.leaseMs, 'lease'),
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

function stuckPolicyOf(policy: StuckPolicy = 'hold'): StuckPolicy {
  if (typeof policy === 'function' || STUCK_ACTIONS.includes(policy)) return policy
  throw new CommandInvalid('onStuck', `must be ${STUCK_ACTIONS.join(', ')} or a function`)
}
