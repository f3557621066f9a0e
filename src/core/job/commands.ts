/** The commands for a job. `decide.ts` decides each of them. */
import type { Failure } from '../failure.ts'
import type { LimitKey } from '../limits/keys.ts'
import type { JobPolicy } from '../retry.ts'
import type { ActorKind } from './facts.ts'
import type { After, FlowPlace, Look } from './links.ts'
import type { Wait } from './waits.ts'

/** Proves that an execution holds the job: both values must match, and the lease must be valid. */
export interface Fence {
  readonly attempt: number
  readonly claim: string
}

/** Counters that the handler set. */
export type Usage = Readonly<Record<string, number>>

/** Creates the job and submits it in the same step, unless `hold` is set. */
export interface CreateCommand {
  readonly kind: 'create'
  readonly jobId: string
  readonly type: string
  readonly queue: string
  readonly priority?: number
  /** The job is ordered as if it had been due so much earlier; 0 if absent. */
  readonly aheadMs?: number
  readonly tags?: readonly string[]
  readonly key?: string
  /** The gates that the job counts in while it runs; see `core/limits/keys.ts`. */
  readonly limitKeys?: readonly LimitKey[]
  readonly retryOf?: string
  readonly timeoutMs?: number
  readonly deadlineAt?: number
  readonly policy?: JobPolicy
  /** The earliest time at which the job may run; now if absent. */
  readonly runAt?: number
  /** If true, the job is only created. It runs after a `submit` or `schedule`. */
  readonly hold?: boolean
  /** The flow, batch or invoke that the job belongs to. Only the verbs of flows set this. */
  readonly flow?: FlowPlace
  /** Others wait for its end. Only the verbs of flows set this. */
  readonly awaited?: boolean
  /** What the job waits for before its first attempt. Only the verbs of flows set this. */
  readonly after?: After
}

/** The commands of an execution for its job, with its fence. */
export type AttemptCommand =
  | { readonly kind: 'start'; readonly fence: Fence }
  | {
      readonly kind: 'step'
      readonly fence: Fence
      readonly name: string
      readonly n: number
      /** The store found this step in the ledger already. The first result is kept. */
      readonly known?: boolean
    }
  | {
      readonly kind: 'commit'
      readonly fence: Fence
      /** How many effects the commit put into the outbox. If 0, the job is done at once. */
      readonly effects?: number
      readonly usage?: Usage
    }
  | {
      readonly kind: 'fail'
      readonly fence: Fence
      readonly failure: Failure
      readonly usage?: Usage
    }
  | { readonly kind: 'release'; readonly fence: Fence }
  | {
      readonly kind: 'suspend'
      readonly fence: Fence
      readonly runAt: number
      /**
       * 'snoozed' if the handler asked for it, 'throttled' if it closes a throttle until then;
       * 'suspended' if absent.
       */
      readonly reason?: 'snoozed' | 'throttled'
      /** The throttle that is closed: a gate of the job. */
      readonly gate?: string
    }

export type Command =
  | CreateCommand
  | AttemptCommand
  /**
   * Waits. The store says what it found in the ledger, under the lock of the job: `known` if this
   * wait is over already, `next` is the number of the fact of the oldest unread signal.
   */
  | {
      readonly kind: 'wait'
      readonly fence: Fence
      readonly wait: Wait
      readonly known?: boolean
      readonly next?: number
      /** All children that the wait is for have ended. */
      readonly ended?: boolean
    }
  | { readonly kind: 'submit' }
  | { readonly kind: 'schedule'; readonly runAt: number }
  | { readonly kind: 'due' }
  | { readonly kind: 'reschedule'; readonly runAt: number }
  | { readonly kind: 'prioritise'; readonly priority: number; readonly aheadMs?: number }
  /**
   * Sends a signal, whose payload is stored beside the fact. The store says what it found in the
   * ledger: `known` if the job has a signal of this name and key, `awaited` if it waits for one of
   * this name.
   */
  | {
      readonly kind: 'signal'
      readonly name: string
      readonly key: string
      readonly known?: boolean
      readonly awaited?: boolean
    }
  /** Replaces the input, which is stored beside this fact. Only before the first attempt. */
  | { readonly kind: 'replace'; readonly limitKeys?: readonly LimitKey[] }
  /**
   * Something that the job waits for has ended. The store says what it found, under the lock of the
   * job.
   */
  | { readonly kind: 'arrive'; readonly look: Look }
  | { readonly kind: 'exhaust' }
  | {
      readonly kind: 'claim'
      readonly claim: string
      readonly worker: string
      readonly leaseUntil: number
      /** If true, the execution also enters IN_PROGRESS, because a slot is free now. */
      readonly start: boolean
    }
  /** All effects are delivered. Needs no fence. */
  | { readonly kind: 'done'; readonly attempt: number }
  /**
   * Names the exact lease that was read. `approved` is an operator's approval for a stalled job.
   */
  | { readonly kind: 'expire'; readonly fence: Fence; readonly approved?: boolean }
  /** With a fence: the holder carries out a cancel request. Without: ends the job at once. */
  | {
      readonly kind: 'cancel'
      readonly fence?: Fence
      /** Why the engine cancels it; 'cancelled' if absent. */
      readonly reason?: 'parent_ended'
    }
  | { readonly kind: 'park' }
  /**
   * For a job that waits, the store says what it found: `arrived` if everything came out as needed,
   * `missed` if the failure that it waits for cannot happen any more.
   */
  | { readonly kind: 'redrive'; readonly arrived?: boolean; readonly missed?: boolean }
  | { readonly kind: 'discard' }
  | { readonly kind: 'force'; readonly to: string }
  /** Without `to`, only records that the row was rebuilt. */
  | { readonly kind: 'repair'; readonly to?: string }

export type CommandKind = Command['kind']

/** The inputs from outside: the time, a random number, and the requester. */
export interface Context {
  /** The store's clock, in milliseconds since the epoch. */
  readonly now: number
  /** From [0, 1), for jitter. */
  readonly random: number
  /** How many retries wait in the job's queue; 0 if absent. */
  readonly retriesAhead?: number
  readonly actor: ActorKind
  /** Who acts. Operator commands require it, together with a note. */
  readonly operator?: string
  readonly note?: string
  /** Further texts for the ledger. */
  readonly metadata?: Readonly<Record<string, string>>
  /** The span in which the command is sent. */
  readonly traceId?: string
  readonly spanId?: string
  readonly traceFlags?: number
  readonly traceState?: string
}

/** The commands that need a fence: the holder sends them, or they name the holder's lease. */
export const FENCED_COMMANDS: readonly CommandKind[] = [
  'start',
  'step',
  'commit',
  'fail',
  'release',
  'suspend',
  'wait',
  'expire',
]

/** The commands that need a named operator and a note. */
export const OPERATOR_COMMANDS: readonly CommandKind[] = [
  'park',
  'redrive',
  'discard',
  'force',
  'repair',
]

export const COMMAND_KINDS: readonly CommandKind[] = [
  'create',
  'submit',
  'schedule',
  'due',
  'reschedule',
  'prioritise',
  'replace',
  'signal',
  'arrive',
  'exhaust',
  'claim',
  ...FENCED_COMMANDS,
  'done',
  'cancel',
  ...OPERATOR_COMMANDS,
]
