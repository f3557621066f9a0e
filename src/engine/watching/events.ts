/**
 * What happens in a process that uses Pawl, for logs, metrics and tests. Whoever listens is told
 * after the fact and cannot change it; `worker` says in which worker it happened, and is null where
 * it was the program itself that asked.
 */
import type { PawlError } from '../../core/errors.ts'
import type { ActorKind, FactTrigger } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import type { Lane } from '../../core/job/lanes.ts'
import type { Finding } from '../../doctor/finding.ts'
import type { QueueRecord } from '../../stores/queue-records.ts'
import type { EffectReport } from '../../stores/store.ts'
import type { TimeChange } from '../../stores/store-time.ts'
import type { SlotMove } from '../worker/slots.ts'

/** A command that the store refused; nothing was changed by it. */
export interface RefusedEvent {
  readonly type: 'refused'
  readonly worker: string | null
  readonly jobId: string
  /** What was asked for. */
  readonly command: string
  /** The machine that has no such edge, or that of the job. */
  readonly machine: string | null
  /** The state in which the command found the job, as far as is known. */
  readonly from: string | null
  /** The state that it would have led to, where the machine has no edge to it. */
  readonly to: string | null
  readonly error: PawlError
}

/** A lease that ran out, found by recovery. */
export interface ExpiredEvent {
  readonly type: 'expired'
  /** Who found it. */
  readonly worker: string | null
  /** The job as it is now. */
  readonly job: Job
  /** The attempt that went silent, and who made it, as far as is known. */
  readonly attempt: number
  readonly holder: string | null
  /** Flagged: it waits for an operator. Otherwise it was taken back. */
  readonly isStalled: boolean
  /** How long ago the lease had ended. */
  readonly expiredForMs: number
}

/** A job that took edges of its lifecycle by what this process asked for or did. */
export interface MovedEvent {
  readonly type: 'moved'
  readonly worker: string | null
  /** The job as it is now. */
  readonly job: Job
  /** The states that it went through, from the one that it left to the one that it is in. */
  readonly path: readonly string[]
  /** What happened to it, by whom. */
  readonly trigger: FactTrigger
  readonly actor: ActorKind
  readonly operator?: string
  /**
   * How long it had been in the first of them: since the start of the attempt if it was held, since
   * it was due if it was claimed, else since its last fact. Absent for a job that was just created.
   */
  readonly stayedMs?: number
}

/** A job that follows a later version of its lifecycle from here on. */
export interface MigratedEvent {
  readonly type: 'migrated'
  readonly worker: string | null
  /** The job as it is now. */
  readonly job: Job
  /** The versions before and after. */
  readonly from: number
  readonly to: number
  /** Its states before and after. */
  readonly path: readonly [string, string]
}

/** A handler that goes on although its attempt was given up. */
export interface StuckEvent {
  /** `unstuck` is told when the handler of a `stuck` has ended after all. */
  readonly type: 'stuck' | 'unstuck'
  readonly worker: string
  readonly job: Job
  /** How long it has gone on since its attempt was given up. */
  readonly forMs: number
  /** How many handlers of this worker are stuck, this one included while it is. */
  readonly stuck: number
}

/** A handler that shows no sign of life under a live lease; it may hang. */
export interface SilentEvent {
  readonly type: 'silent'
  readonly worker: string
  /** The job as it was claimed. */
  readonly job: Job
  /** How long ago its last sign of life was: progress, count, step or commit. */
  readonly silentMs: number
}

/** What came of one delivery of an effect, or of a notice. */
export interface EffectEvent {
  readonly type: 'effect'
  readonly worker: string
  /** Lost: somebody else has taken it since, and will deliver it again. */
  readonly result: EffectReport['kind'] | 'lost'
  readonly key: string
  readonly jobId: string
  readonly jobType: string
  readonly name: string
  /** Above 1 it may have been delivered before. */
  readonly tries: number
  readonly error?: string
}

/** A job that was set aside because its stored row cannot be read or trusted. */
export interface IsolatedEvent {
  readonly type: 'isolated'
  readonly worker: string | null
  readonly jobId: string
  /** The lane in which it was found; null if its row names none that exists. */
  readonly lane: Lane | null
  readonly why: string
}

/** The settings of a queue that this process has changed. */
export interface QueueEvent {
  readonly type: 'queue'
  readonly worker: string | null
  readonly record: QueueRecord
}

/** What happens in a process. */
export type PawlEvent =
  /** Accepted, or part of a transaction of the user's own that may yet be rolled back. */
  | { readonly type: 'enqueued'; readonly job: Job }
  | ({ readonly type: 'state'; readonly worker: string } & SlotMove)
  | { readonly type: 'started'; readonly worker: string; readonly job: Job }
  /** The store has taken what came of an attempt; the job is as it is then. */
  | { readonly type: 'reported'; readonly worker: string; readonly job: Job }
  /** An attempt that has no lease any more; the job is as it was claimed. */
  | { readonly type: 'lost'; readonly worker: string; readonly job: Job }
  | StuckEvent
  | SilentEvent
  | MovedEvent
  | MigratedEvent
  | RefusedEvent
  /** A command that changed nothing: the job is where it would have led to; or whose holder was
   * asked to carry it out. */
  | {
      readonly type: 'same' | 'asked'
      readonly worker: string | null
      readonly command: string
      readonly job: Job
    }
  | ExpiredEvent
  | EffectEvent
  | IsolatedEvent
  | QueueEvent
  /** The store is waited for (`connect: 'wait'`); the states are those of the worker machine. */
  | {
      readonly type: 'connection'
      readonly state: 'Connecting' | 'ErrorWait' | 'Connected'
      readonly waitedMs: number
      /** Why the store cannot be used, if that is known. */
      readonly error?: PawlError
    }
  /** What a round of the doctor saw. */
  | { readonly type: 'finding'; readonly worker: string; readonly finding: Finding }
  /** The time of a SQLite file was changed by this process, or its wall clock differs from it. */
  | { readonly type: 'time'; readonly change: TimeChange }
  | { readonly type: 'error'; readonly worker: string; readonly error: unknown }
