/** What can be asked of a job. Each command is decided in `decide.ts`. */
import type { Failure } from '../failure.ts'
import type { JobPolicy } from '../retry.ts'
import type { ActorKind } from './facts.ts'

/** The right of one execution to move its job: both numbers must match, and the lease must run. */
export interface Fence {
  readonly attempt: number
  readonly claim: string
}

/** Duration, queue time and counters that the handler set. */
export type Usage = Readonly<Record<string, number>>

/** Creates the job, and submits it in the same step unless it is held back. */
export interface CreateCommand {
  readonly kind: 'create'
  readonly jobId: string
  readonly type: string
  readonly queue: string
  readonly priority?: number
  readonly tags?: readonly string[]
  readonly key?: string
  readonly limitKey?: string
  readonly retryOf?: string
  readonly timeoutMs?: number
  readonly deadlineAt?: number
  readonly policy?: JobPolicy
  /** Not before this time; now if absent. */
  readonly runAt?: number
  /** Create only; a later submit lets it run. */
  readonly hold?: boolean
}

/** Everything that an execution asks of its job, under its fence. */
export type AttemptCommand =
  | { readonly kind: 'start'; readonly fence: Fence }
  | {
      readonly kind: 'step'
      readonly fence: Fence
      readonly name: string
      readonly n: number
      /** Whoever keeps the ledger found this step in it already; the first result stands. */
      readonly known?: boolean
    }
  | {
      readonly kind: 'commit'
      readonly fence: Fence
      /** How many effects were put into the outbox; with none the job is done at once. */
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
  | { readonly kind: 'suspend'; readonly fence: Fence; readonly runAt: number }

/** Every command. */
export type Command =
  | CreateCommand
  | AttemptCommand
  | { readonly kind: 'submit' }
  | { readonly kind: 'schedule'; readonly runAt: number }
  | { readonly kind: 'due' }
  | { readonly kind: 'reschedule'; readonly runAt: number }
  | { readonly kind: 'prioritise'; readonly priority: number }
  /** The input is another one, stored beside this fact; only before the first attempt. */
  | { readonly kind: 'replace' }
  | { readonly kind: 'exhaust' }
  | {
      readonly kind: 'claim'
      readonly claim: string
      readonly worker: string
      readonly leaseUntil: number
      /** Also enters IN_PROGRESS: a slot is free now. */
      readonly start: boolean
    }
  /** All effects are delivered; anybody may say so. */
  | { readonly kind: 'done'; readonly attempt: number }
  /** Names the exact lease that was read; `approved` is the operator's word for a stalled job. */
  | { readonly kind: 'expire'; readonly fence: Fence; readonly approved?: boolean }
  /** With a fence: by the holder, who honours a request. Without: at once, whoever holds it. */
  | { readonly kind: 'cancel'; readonly fence?: Fence }
  | { readonly kind: 'park' }
  | { readonly kind: 'redrive' }
  | { readonly kind: 'discard' }
  | { readonly kind: 'force'; readonly to: string }
  /** Without `to` it only records that the row was rebuilt. */
  | { readonly kind: 'repair'; readonly to?: string }

/** The name of a command. */
export type CommandKind = Command['kind']

/** What comes from outside: the time, a random number, and who asks. */
export interface Context {
  /** The store's clock, in milliseconds since the epoch. */
  readonly now: number
  /** From [0, 1), for jitter. */
  readonly random: number
  /** How many retries wait in the job's queue; 0 if absent. */
  readonly retriesAhead?: number
  readonly actor: ActorKind
  /** Who acts: required, with a note, for every operator command. */
  readonly operator?: string
  readonly note?: string
  /** Whatever else the ledger should say of this step. */
  readonly metadata?: Readonly<Record<string, string>>
  readonly traceId?: string
  readonly spanId?: string
}

/** The commands that a holder gives, or that name a holder's lease; none of them goes without. */
export const FENCED_COMMANDS: readonly CommandKind[] = [
  'start',
  'step',
  'commit',
  'fail',
  'release',
  'suspend',
  'expire',
]

/** The commands that only a named operator may give, with a note that says why. */
export const OPERATOR_COMMANDS: readonly CommandKind[] = [
  'park',
  'redrive',
  'discard',
  'force',
  'repair',
]

/** Every command there is. */
export const COMMAND_KINDS: readonly CommandKind[] = [
  'create',
  'submit',
  'schedule',
  'due',
  'reschedule',
  'prioritise',
  'replace',
  'exhaust',
  'claim',
  ...FENCED_COMMANDS,
  'done',
  'cancel',
  ...OPERATOR_COMMANDS,
]
