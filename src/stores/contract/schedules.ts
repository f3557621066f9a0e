/**
 * The schedules of a store, and the records of their ticks and changes. Like all verbs, each is one
 * transaction. A store does not know cron: callers pass a function that returns the ticks of a
 * timing. It may throw if this process does not know the time zone.
 */
import type { PawlError } from '../../core/errors.ts'
import type { ActorKind } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import type { ScheduleRules } from '../../core/schedule/definition.ts'
import type { TickSource, Timing } from '../../core/schedule/ticks.ts'
import type { TraceContext } from '../../core/trace.ts'
import type { RepairAuthor } from './examination.ts'
import type { Answer, Page, Requester } from './store.ts'

/** Returns the ticks of a timing. */
export type TicksOf = (timing: Timing) => TickSource

/** Whether a schedule comes from the options of `createPawl` or from `pawl.schedules.put`. */
export type ScheduleOrigin = 'code' | 'program'

/** A schedule to be stored. */
export interface NewSchedule {
  readonly name: string
  readonly rules: ScheduleRules
  /** The input of its jobs, as JSON text. */
  readonly input: string
  readonly origin: ScheduleOrigin
}

/** A schedule as the store has it. */
export interface Schedule {
  readonly name: string
  /** `undefined` if the stored definition is damaged; the doctor repairs it. */
  readonly rules: ScheduleRules | undefined
  /** JSON text. */
  readonly input: string
  readonly origin: ScheduleOrigin
  /** Counts the definitions that the schedule has had. */
  readonly version: number
  /** The last tick that was dealt with, or the time from which the schedule counts. */
  readonly cursor: number
  /** The next tick; `undefined` if there is none. */
  readonly nextAt: number | undefined
  /** Ticks that wait until no job of the schedule is open. */
  readonly buffered: readonly number[]
  /** Ids of jobs that had not ended when the schedule was last looked at. */
  readonly open: readonly string[]
  readonly lastTick: number | undefined
  readonly lastJob: string | undefined
  readonly pausedAt: number | undefined
  /** Who paused it, and why. */
  readonly pausedBy: string | undefined
  readonly pauseNote: string | undefined
  readonly createdAt: number
  readonly changedAt: number
}

/** What became of a tick. */
export const TICK_RESULTS = ['fired', 'late', 'skipped', 'missed', 'backfilled'] as const
export type TickResult = (typeof TICK_RESULTS)[number]

/** What was done to a schedule. */
type ScheduleAction = 'put' | 'pause' | 'resume' | 'run' | 'backfill' | 'remove'

/** One tick of a schedule, a range of missed ticks, or one change. Never changed or deleted. */
export interface ScheduleRecord {
  /** Grows with every record of the store; gaps are possible. */
  readonly number: number
  readonly at: number
  readonly schedule: string
  /** What became of the tick, or what was done to the schedule. */
  readonly action: TickResult | ScheduleAction
  readonly actor: ActorKind
  readonly operator?: string
  /** Why, in the operator's words. */
  readonly note?: string
  readonly tick?: number
  /** The last tick of a range of missed ticks. */
  readonly lastTick?: number
  /** How many ticks the range has, counted up to 1000. */
  readonly ticks?: number
  /** The tick before, if it is known. */
  readonly previous?: number
  /** The job that was made, or the job because of which none was made. */
  readonly job?: string
  /** Why no job was made, in one word, or the code of an error. */
  readonly reason?: string
  /** JSON texts: what a change concerned, before and after. */
  readonly before?: string
  readonly after?: string
}

/** Which records are listed; all if it is empty. */
export interface ScheduleRecordFilter {
  readonly schedule?: string
  /** Records of ticks, or of changes; both if absent. */
  readonly kind?: 'tick' | 'change'
}

/** The result of `put`. */
export interface PutResult {
  /** With `same` nothing was written. */
  readonly kind: 'created' | 'changed' | 'same'
  readonly schedule: Schedule
}

/** What a call has written about schedules. */
export interface Firing {
  readonly records: readonly ScheduleRecord[]
  /** The jobs that were made. */
  readonly jobs: readonly Job[]
  /** Answers about open jobs that were cancelled by the overlap policy `cancelOther`. */
  readonly cancelled: readonly Answer[]
  /** Schedules that this process could not look at; another process may be able to. */
  readonly failed: readonly { readonly schedule: string; readonly error: PawlError }[]
  /** Whether more is due. */
  readonly more: boolean
}

/** The result of a change, and what was written about ticks before it. */
export interface ScheduleChange<T> extends Firing {
  readonly result: T
}

/** Which ticks an operator makes up for. */
export interface BackfillRequest {
  /** Ticks that are not before this time. */
  readonly from: number
  /** Ticks that are not after this time; not later than now. */
  readonly to: number
  /** Whether the jobs run one after the other or all at once. */
  readonly overlap: 'bufferAll' | 'allowAll'
  readonly dryRun: boolean
}

/** What a backfill did or would do. */
export interface Backfill extends Firing {
  /** Ticks that get a job, now or later. */
  readonly ticks: readonly number[]
  /** Ticks that have a job already. */
  readonly existing: readonly number[]
}

/** The schedules of a store. */
export interface ScheduleTables {
  /**
   * Stores a schedule. Ticks of an earlier definition that are due are made first; the new one
   * counts from now. A schedule that is paused stays so.
   */
  put(
    schedule: NewSchedule,
    ticksOf: TicksOf,
    requester?: Requester,
  ): Promise<ScheduleChange<PutResult>>
  /** Returns `undefined` if there is no such schedule. */
  get(name: string): Promise<Schedule | undefined>
  /** Schedules by name. */
  list(options?: { limit?: number; after?: string }): Promise<Page<Schedule>>
  /** Records, newest first. */
  records(
    filter: ScheduleRecordFilter,
    options?: { limit?: number; after?: string },
  ): Promise<Page<ScheduleRecord>>
  /** The record of the tick that made a job. */
  recordOf(schedule: string, tick: number): Promise<ScheduleRecord | undefined>
  /** When a schedule has to be looked at next; `undefined` if none has to. @internal */
  nextLook(): Promise<number | undefined>
  /**
   * Makes the jobs of ticks that are due, each once, and records every tick that has passed. Looks
   * at `limit` schedules at most; those that others lock are left out. The facts of new jobs keep
   * the ids of `trace`. @internal
   */
  fire(limit: number, ticksOf: TicksOf, trace?: TraceContext): Promise<Firing>
  /** The result is the record, or `undefined` if the schedule is paused already. @internal */
  pause(name: string, requester: Requester): Promise<ScheduleChange<ScheduleRecord | undefined>>
  /** Ticks that came while it was paused are missed. @internal */
  resume(
    name: string,
    ticksOf: TicksOf,
    requester: Requester,
  ): Promise<ScheduleChange<ScheduleRecord | undefined>>
  /** Makes a job now, whatever is open; it belongs to no tick. @internal */
  run(name: string, requester: Requester): Promise<Firing>
  /** Makes up for ticks that have passed; at most 1000 in one call. @internal */
  backfill(
    name: string,
    request: BackfillRequest,
    ticksOf: TicksOf,
    requester: Requester,
  ): Promise<Backfill>
  /** What is wrong with a schedule, by its records; empty if nothing is. @internal */
  faults(name: string, ticksOf: TicksOf): Promise<readonly string[]>
  /** Restores a schedule from its records, and keeps a note of its row. @internal */
  restore(name: string, ticksOf: TicksOf, by: RepairAuthor): Promise<void>
  /** Removes a schedule; its jobs and records stay. @internal */
  remove(
    name: string,
    ticksOf: TicksOf,
    requester: Requester,
  ): Promise<ScheduleChange<ScheduleRecord>>
}
