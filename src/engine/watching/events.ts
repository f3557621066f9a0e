/**
 * The events of a process, for logs, metrics and tests. Each is emitted after the change, and
 * observers cannot influence it. `worker` is the worker that made the change, or null if the
 * program made the call itself.
 */
import type { PawlError } from '../../core/errors.ts'
import type { ActorKind, FactTrigger } from '../../core/job/facts.ts'
import type { Job, JobError } from '../../core/job/job.ts'
import type { Lane } from '../../core/job/lanes.ts'
import type { EndedWord } from '../../core/retention.ts'
import type { ThrownError } from '../../core/thrown.ts'
import type { Finding } from '../../doctor/finding.ts'
import type { LimitRecord } from '../../stores/contract/limits.ts'
import type { ScheduleRecord } from '../../stores/contract/schedules.ts'
import type { EffectReport } from '../../stores/contract/store.ts'
import type { QueueRecord } from '../../stores/queue-records.ts'
import type { TimeChange } from '../../stores/store-time.ts'
import type { Leftover } from '../worker/handed.ts'
import type { SlotMove } from '../worker/slots.ts'

/** A command that the store rejected; it changed nothing. */
export interface RefusedEvent {
  readonly type: 'refused'
  readonly worker: string | null
  readonly jobId: string
  /** The kind of the command. */
  readonly command: string
  /** The state machine without such an edge; otherwise the job's lifecycle. */
  readonly machine: string | null
  /** The state of the job before the command, if known. */
  readonly from: string | null
  /** The target state, if the machine has no edge to it. */
  readonly to: string | null
  readonly error: PawlError
}

/** An expired lease that recovery found. */
export interface ExpiredEvent {
  readonly type: 'expired'
  /** The worker that found it. */
  readonly worker: string | null
  /** The job after recovery. */
  readonly job: Job
  /** The attempt whose lease expired; `holder` is its worker, if known. */
  readonly attempt: number
  readonly holder: string | null
  /** True if the job waits for an operator; false if it was recovered. */
  readonly isStalled: boolean
  /** How long ago the lease expired. */
  readonly expiredForMs: number
  /** When the job runs again; null if it has ended, is parked or waits for an operator. */
  readonly retryAt: number | null
}

/** A job that passed through edges of its lifecycle because of a call of this process. */
export interface MovedEvent {
  readonly type: 'moved'
  readonly worker: string | null
  /** The job after the change. */
  readonly job: Job
  /** The states, from the one that it left to the current one. */
  readonly path: readonly string[]
  /** The cause, and who caused it. */
  readonly trigger: FactTrigger
  readonly actor: ActorKind
  readonly operator?: string
  /**
   * How long the job was in the first of these states: since the start of the attempt if it was
   * held, since it was due if it was claimed, otherwise since its last fact. Absent for a new job.
   */
  readonly stayedMs?: number
}

/** A job that was migrated to a later version of its lifecycle. */
export interface MigratedEvent {
  readonly type: 'migrated'
  readonly worker: string | null
  /** The job after the migration. */
  readonly job: Job
  /** The versions before and after. */
  readonly from: number
  readonly to: number
  /** The states before and after. */
  readonly path: readonly [string, string]
}

/** A handler that still runs although its attempt is over. */
export interface StuckEvent {
  /** `unstuck` follows `stuck` when the handler has ended. */
  readonly type: 'stuck' | 'unstuck'
  readonly worker: string
  readonly job: Job
  /** How long it has been running since its attempt was over. */
  readonly forMs: number
  /** The number of stuck handlers in this worker, including this one for `stuck`. */
  readonly stuck: number
}

/** An attempt that failed, after the store has recorded it. */
export interface FailedEvent {
  readonly type: 'failed'
  readonly worker: string
  /** The job after the failure. */
  readonly job: Job
  readonly attempt: number
  readonly error: JobError
  /** The stack and the causes, as stored. */
  readonly thrown?: ThrownError
  /** When the job is tried again; null if it has ended or is parked. */
  readonly retryAt: number | null
  /** The very value that the handler threw; not redacted. */
  readonly original?: unknown
}

/** A promise of Pawl that a handler did not await; see `Leftover`. */
export interface LeftoverEvent extends Leftover {
  readonly type: 'leftover'
  readonly worker: string
  /** The job as it was claimed. */
  readonly job: Job
}

/** A handler without activity under a valid lease; it may hang. */
export interface SilentEvent {
  readonly type: 'silent'
  readonly worker: string
  /** The job as it was claimed. */
  readonly job: Job
  /** Time since the handler last called progress, count, step or commit. */
  readonly silentMs: number
}

/** A job that ended before it had received all of its signals. */
export interface UnreadEvent {
  readonly type: 'unread'
  readonly worker: string | null
  /** The job after its end. */
  readonly job: Job
  readonly signals: readonly UnreadSignal[]
}

/** A signal that was not received; `seq` is the number of its fact. */
export interface UnreadSignal {
  readonly seq: number
  readonly name: string
  readonly key: string
}

/** The result of one delivery of an effect or a notice. */
export interface EffectEvent {
  readonly type: 'effect'
  readonly worker: string
  /** 'lost': another process has claimed the effect since, and delivers it again. */
  readonly result: EffectReport['kind'] | 'lost'
  readonly key: string
  readonly jobId: string
  readonly jobType: string
  readonly name: string
  /** If greater than 1, the effect may have been delivered before. */
  readonly tries: number
  readonly error?: string
  /** When it is delivered again; null if it was delivered, is parked or was lost. */
  readonly retryAt: number | null
  /** The key by which failures are grouped, and the stack and causes, redacted. */
  readonly fingerprint?: string
  readonly thrown?: ThrownError
  /** The very value that the function threw; not redacted. */
  readonly original?: unknown
}

/** What became of a job that waits for others, when these had ended or one of them had failed. */
export interface ArrivedEvent {
  readonly type: 'arrived'
  readonly worker: string | null
  /** The job after the change. */
  readonly job: Job
  /**
   * released: it may start, or go on. dependency-failed: it is parked or has ended, because another
   * job did not succeed. ended: it was cancelled, because it is not needed or its parent has ended.
   */
  readonly result: 'released' | 'dependency-failed' | 'ended'
  /** The job whose end decided it; null if all had to end. */
  readonly dependency: string | null
}

/** A damaged job that was set aside: its stored row cannot be read or trusted. */
export interface IsolatedEvent {
  readonly type: 'isolated'
  readonly worker: string | null
  readonly jobId: string
  /** The lane of its row; null if the row names an unknown lane. */
  readonly lane: Lane | null
  readonly why: string
}

/** A change of a queue's settings by this process. */
export interface QueueEvent {
  readonly type: 'queue'
  readonly worker: string | null
  readonly record: QueueRecord
}

/** A tick of a schedule, or a change of one, by this process. */
export interface ScheduleEvent {
  readonly type: 'schedule'
  readonly worker: string | null
  readonly record: ScheduleRecord
}

/** A schedule that this process could not look at: it is damaged, or its zone is not known. */
export interface ScheduleFailedEvent {
  readonly type: 'schedule-failed'
  readonly worker: string | null
  readonly schedule: string
  readonly error: PawlError
}

/** What became of an enqueue of a job type with `rateLimit`, `debounce` or `singleton`. */
export interface AdmissionEvent {
  readonly type: 'admission'
  readonly worker: string | null
  readonly jobType: string
  /**
   * created: a new job. replaced: an existing job has the new input. existing: an existing job is
   * the answer. limited: refused with `RateLimited`.
   */
  readonly result: 'created' | 'replaced' | 'existing' | 'limited'
}

/** Ended jobs that retention removed. */
export interface RetentionEvent {
  readonly type: 'retention'
  readonly worker: string | null
  /** How the jobs had ended, and for how long such jobs are kept. */
  readonly outcome: EndedWord
  readonly keepMs: number
  readonly removed: number
  /** How many of their keys stay taken. */
  readonly keys: number
  /** The operator who asked for it; absent if a worker did it by itself. */
  readonly operator?: string
}

/** A limit that this process has declared, set or reset. */
export interface LimitEvent {
  readonly type: 'limit'
  readonly worker: string | null
  readonly record: LimitRecord
}

/** An event of a process. */
export type PawlEvent =
  /** Enqueued; if in your own transaction, that may still be rolled back. */
  | { readonly type: 'enqueued'; readonly job: Job }
  | ({ readonly type: 'state'; readonly worker: string } & SlotMove)
  | { readonly type: 'started'; readonly worker: string; readonly job: Job }
  /** The store has recorded the report of an attempt; `job` is the job after it. */
  | { readonly type: 'reported'; readonly worker: string; readonly job: Job }
  /** An attempt has lost its lease; `job` is the job as it was claimed. */
  | { readonly type: 'lost'; readonly worker: string; readonly job: Job }
  | FailedEvent
  | LeftoverEvent
  | StuckEvent
  | SilentEvent
  | UnreadEvent
  | MovedEvent
  | MigratedEvent
  | RefusedEvent
  /**
   * `same`: the command changed nothing, because the job is in the target state already. `asked`:
   * the worker that holds the job was asked to carry it out.
   */
  | {
      readonly type: 'same' | 'asked'
      readonly worker: string | null
      readonly command: string
      readonly job: Job
    }
  | ExpiredEvent
  | EffectEvent
  | ArrivedEvent
  | IsolatedEvent
  | QueueEvent
  | ScheduleEvent
  | ScheduleFailedEvent
  | RetentionEvent
  | AdmissionEvent
  | LimitEvent
  /** Emitted while `connect: 'wait'` waits for the store; the states are the worker machine's. */
  | {
      readonly type: 'connection'
      readonly state: 'Connecting' | 'ErrorWait' | 'Connected'
      readonly waitedMs: number
      /** Why the store cannot be used, if that is known. */
      readonly error?: PawlError
    }
  /** A finding of the doctor's rounds. */
  | { readonly type: 'finding'; readonly worker: string; readonly finding: Finding }
  /** This process has changed the time of a SQLite file, or its clock differs from that time. */
  | { readonly type: 'time'; readonly change: TimeChange }
  | { readonly type: 'error'; readonly worker: string; readonly error: unknown }
