/** The schedules of a store, behind the contract of `../contract/schedules.ts`. */
import { count, time } from '../../core/checks.ts'
import { findRulesFault } from '../../core/schedule/definition.ts'
import type { TraceContext } from '../../core/trace.ts'
import type { RepairAuthor } from '../contract/examination.ts'
import { checkPage } from '../contract/filters.ts'
import { CLIENT } from '../contract/requester.ts'
import { check, checkCursor, checkLimit } from '../contract/requests.ts'
import type {
  Backfill,
  BackfillRequest,
  Firing,
  NewSchedule,
  PutResult,
  Schedule,
  ScheduleChange,
  ScheduleRecord,
  ScheduleRecordFilter,
  ScheduleTables,
  TicksOf,
} from '../contract/schedules.ts'
import type { Enqueued, EnqueueItem, Page, Requester } from '../contract/store.ts'
import {
  checkChange,
  checkRecordFilter,
  type NewRecord,
  newRow,
  type ScheduleRecordRow,
  type ScheduleRow,
  toRecord,
  toSchedule,
} from '../schedule-rows.ts'
import { fireSchedules, NOTHING } from './fire.ts'
import type { JobStatus } from './firing.ts'
import type { TableAccess } from './run-tables.ts'
import { findScheduleFaults, restoreSchedule } from './schedule-repair.ts'
import {
  backfillSchedule,
  isSame,
  listScheduleRecords,
  listSchedules,
  pauseSchedule,
  putSchedule,
  removeSchedule,
  resumeSchedule,
  runSchedule,
} from './schedules.ts'

/** The operations of schedules. */
export interface ScheduleOperations {
  /** When a schedule has to be looked at next. */
  nextLook(): number | undefined
  /** Locks schedules that have to be looked at, the longest due first; not those others lock. */
  lockDueSchedules(limit: number): readonly ScheduleRow[]
  lockSchedule(name: string): ScheduleRow | undefined
  /** Inserts a row; returns false if there is one with this name. */
  insertSchedule(row: ScheduleRow): boolean
  /**
   * Writes what ticks change. With `cursors`, one for each row, only if the cursor is still this.
   * Returns how many rows were written.
   */
  writeSchedules(rows: readonly ScheduleRow[], cursors?: readonly number[]): number
  /** Writes every column of a row that was locked. */
  replaceSchedule(row: ScheduleRow): void
  deleteSchedule(name: string): void
  /** Writes records; returns their numbers. */
  recordSchedules(records: readonly NewRecord[]): readonly number[]
  scheduleRow(name: string): ScheduleRow | undefined
  /** Rows by name, after a name. */
  scheduleRows(after: string, limit: number): readonly ScheduleRow[]
  /** Records with a number below `before`, newest first. */
  scheduleRecords(
    filter: ScheduleRecordFilter,
    before: number,
    limit: number,
  ): readonly ScheduleRecordRow[]
  /** The last record by which a tick has a job. */
  tickRecord(schedule: string, tick: number): ScheduleRecordRow | undefined
  /** The ticks from one time to another that have a job. */
  madeTicks(schedule: string, from: number, to: number): readonly number[]
  /** What of these jobs is open or has failed; jobs that do not exist are left out. */
  jobStatuses(ids: readonly string[]): readonly JobStatus[]
  /** Accepts jobs in this transaction. If a key is taken, the answer has the job that has it. */
  createJobs(items: readonly EnqueueItem[], requester: Requester): Enqueued[]
}

const RECORD_NUMBER = /^\d{1,15}$/

export class StoredSchedules implements ScheduleTables {
  readonly #access: TableAccess

  constructor(access: TableAccess) {
    this.#access = access
  }

  async put(
    schedule: NewSchedule,
    ticksOf: TicksOf,
    requester: Requester = CLIENT,
  ): Promise<ScheduleChange<PutResult>> {
    checkChange(schedule.name, requester)
    const fault = findRulesFault(schedule.name, schedule.rules)
    if (fault !== undefined) throw fault
    // Every process puts its schedules when it starts: mostly nothing has changed.
    const row = await this.#access.look((tx) => tx.scheduleRow(schedule.name))
    if (row !== undefined && isSame(row, newRow(schedule, 0, undefined))) {
      return { ...NOTHING, result: { kind: 'same', schedule: toSchedule(row) } }
    }
    return this.#access.change('schedules.put', (tx) =>
      putSchedule(tx, schedule, ticksOf, requester),
    )
  }

  async get(name: string): Promise<Schedule | undefined> {
    const row = await this.#access.look((tx) => tx.scheduleRow(name))
    return row && toSchedule(row)
  }

  async list(page: { limit?: number; after?: string } = {}): Promise<Page<Schedule>> {
    checkPage(page)
    return this.#access.look((tx) => listSchedules(tx, page))
  }

  async records(
    filter: ScheduleRecordFilter,
    page: { limit?: number; after?: string } = {},
  ): Promise<Page<ScheduleRecord>> {
    checkRecordFilter(filter)
    checkPage(page)
    checkCursor('after', page.after, RECORD_NUMBER)
    return this.#access.look((tx) => listScheduleRecords(tx, filter, page))
  }

  async recordOf(schedule: string, tick: number): Promise<ScheduleRecord | undefined> {
    const row = await this.#access.look((tx) => tx.tickRecord(schedule, tick))
    return row && toRecord(row)
  }

  nextLook(): Promise<number | undefined> {
    return this.#access.look((tx) => tx.nextLook())
  }

  async fire(limit: number, ticksOf: TicksOf, trace?: TraceContext): Promise<Firing> {
    checkLimit(limit)
    return this.#access.change('schedules.fire', (tx) => fireSchedules(tx, limit, ticksOf, trace))
  }

  async pause(
    name: string,
    requester: Requester,
  ): Promise<ScheduleChange<ScheduleRecord | undefined>> {
    checkChange(name, requester)
    return this.#access.change('schedules.pause', (tx) => pauseSchedule(tx, name, requester))
  }

  async resume(
    name: string,
    ticksOf: TicksOf,
    requester: Requester,
  ): Promise<ScheduleChange<ScheduleRecord | undefined>> {
    checkChange(name, requester)
    return this.#access.change('schedules.resume', (tx) =>
      resumeSchedule(tx, name, ticksOf, requester),
    )
  }

  async run(name: string, requester: Requester): Promise<Firing> {
    checkChange(name, requester)
    return this.#access.change('schedules.run', (tx) => runSchedule(tx, name, requester))
  }

  async backfill(
    name: string,
    request: BackfillRequest,
    ticksOf: TicksOf,
    requester: Requester,
  ): Promise<Backfill> {
    checkChange(name, requester)
    const { from, to } = request
    check([
      ['from', time(from)],
      ['to', time(to) ?? count(to, from, Number.MAX_SAFE_INTEGER)],
    ])
    return this.#access.change('schedules.backfill', (tx) =>
      backfillSchedule(tx, name, request, ticksOf, requester),
    )
  }

  faults(name: string, ticksOf: TicksOf): Promise<readonly string[]> {
    return this.#access.look((tx) => findScheduleFaults(tx, name, ticksOf))
  }

  restore(name: string, ticksOf: TicksOf, by: RepairAuthor): Promise<void> {
    return this.#access.change('schedules.restore', (tx) => restoreSchedule(tx, name, ticksOf, by))
  }

  async remove(
    name: string,
    ticksOf: TicksOf,
    requester: Requester,
  ): Promise<ScheduleChange<ScheduleRecord>> {
    checkChange(name, requester)
    return this.#access.change('schedules.remove', (tx) =>
      removeSchedule(tx, name, ticksOf, requester),
    )
  }
}
