/** Schedules, their records, and the jobs of their ticks. */
import { LANES } from '../../../core/job/lanes.ts'
import type { Accepted } from '../../accept.ts'
import type { ScheduleRecordFilter } from '../../contract/schedules.ts'
import type { Enqueued, EnqueueItem, Requester } from '../../contract/store.ts'
import { HAS_FAILED } from '../../ends.ts'
import { scheduleAcceptance } from '../../schedule-acceptance.ts'
import {
  MADE_ACTIONS,
  MOVING_COLUMNS,
  type NewRecord,
  RECORD_COLUMNS,
  SCHEDULE_COLUMNS,
  type ScheduleRecordRow,
  type ScheduleRow,
  TICK_ACTIONS,
} from '../../schedule-rows.ts'
import { enqueue } from '../enqueue.ts'
import type { At } from './at.ts'

const SELECT_NEXT = `
  SELECT look_at FROM pawl_schedules WHERE look_at IS NOT NULL ORDER BY look_at, name LIMIT 1`
const SELECT_DUE = `
  SELECT * FROM pawl_schedules WHERE look_at <= ? ORDER BY look_at, name LIMIT ?`
const SELECT_ONE = 'SELECT * FROM pawl_schedules WHERE name = ?'
const SELECT_PAGE = 'SELECT * FROM pawl_schedules WHERE name > ? ORDER BY name LIMIT ?'

const INSERT = `
  INSERT INTO pawl_schedules (${SCHEDULE_COLUMNS.map(([column]) => column).join(', ')})
  VALUES (${SCHEDULE_COLUMNS.map(() => '?').join(', ')}) ON CONFLICT (name) DO NOTHING`

const setOf = (columns: typeof SCHEDULE_COLUMNS) =>
  columns.map(([column]) => `${column} = ?`).join(', ')

/** A schedule can be paused by the end of a job, beside the columns that ticks change. */
const WRITTEN = [
  ...MOVING_COLUMNS,
  ...SCHEDULE_COLUMNS.filter(([column]) => /^pause|cursor/.test(column)),
]
const UPDATE = `UPDATE pawl_schedules SET ${setOf(WRITTEN)} WHERE name = ?`
const UPDATE_AT = `${UPDATE} AND cursor_at = ?`

const [, ...NOT_NAME] = SCHEDULE_COLUMNS
const REPLACE = `UPDATE pawl_schedules SET ${setOf(NOT_NAME)} WHERE name = ?`
const DELETE = 'DELETE FROM pawl_schedules WHERE name = ?'

const INSERT_RECORD = `
  INSERT INTO pawl_schedule_records (${RECORD_COLUMNS.map(([column]) => column).join(', ')})
  VALUES (${RECORD_COLUMNS.map(() => '?').join(', ')}) RETURNING number`

const KINDS = { tick: `action IN (${TICK_ACTIONS})`, change: `action NOT IN (${TICK_ACTIONS})` }

const SELECT_TICK = `
  SELECT * FROM pawl_schedule_records
  WHERE schedule = ? AND tick = ? AND action IN (${MADE_ACTIONS}) ORDER BY number DESC LIMIT 1`
const SELECT_MADE = `
  SELECT DISTINCT tick FROM pawl_schedule_records
  WHERE schedule = ? AND tick BETWEEN ? AND ? AND action IN (${MADE_ACTIONS})`

const SELECT_STATUS = `
  SELECT id, lane NOT IN (${LANES.parked}, ${LANES.ended}) AS open, ${HAS_FAILED} AS failed
  FROM pawl_jobs WHERE id = ?`

export const SCHEDULES = {
  nextLook: ({ connection }: At) => connection.get<{ look_at: number }>(SELECT_NEXT)?.look_at,
  lockDueSchedules: ({ connection, now }: At, limit: number) =>
    connection.all<ScheduleRow>(SELECT_DUE, now, limit),
  lockSchedule: ({ connection }: At, name: string) => connection.get<ScheduleRow>(SELECT_ONE, name),
  insertSchedule: ({ connection }: At, row: ScheduleRow) =>
    connection.run(INSERT, ...SCHEDULE_COLUMNS.map(([column]) => row[column])) > 0,
  writeSchedules({ connection }: At, rows: readonly ScheduleRow[], cursors?: readonly number[]) {
    let written = 0
    for (const [i, row] of rows.entries()) {
      const values = [...WRITTEN.map(([column]) => row[column]), row.name]
      const cursor = cursors?.[i]
      written +=
        cursor === undefined
          ? connection.run(UPDATE, ...values)
          : connection.run(UPDATE_AT, ...values, cursor)
    }
    return written
  },
  replaceSchedule({ connection }: At, row: ScheduleRow) {
    connection.run(REPLACE, ...NOT_NAME.map(([column]) => row[column]), row.name)
  },
  deleteSchedule({ connection }: At, name: string) {
    connection.run(DELETE, name)
  },
  recordSchedules({ connection }: At, records: readonly NewRecord[]) {
    return records.map((record) => {
      const values = RECORD_COLUMNS.map(([, , value]) => value(record))
      return connection.get<{ number: number }>(INSERT_RECORD, ...values)?.number ?? 0
    })
  },
  scheduleRow: ({ connection }: At, name: string) => connection.get<ScheduleRow>(SELECT_ONE, name),
  scheduleRows: ({ connection }: At, after: string, limit: number) =>
    connection.all<ScheduleRow>(SELECT_PAGE, after, limit),
  scheduleRecords(
    { connection }: At,
    { schedule, kind }: ScheduleRecordFilter,
    before: number,
    limit: number,
  ) {
    const ofSchedule = schedule === undefined ? '' : 'AND schedule = ?3'
    const ofKind = kind === undefined ? '' : `AND ${KINDS[kind]}`
    const sql = `
      SELECT * FROM pawl_schedule_records WHERE number < ?1 ${ofSchedule} ${ofKind}
      ORDER BY number DESC LIMIT ?2`
    const own = schedule === undefined ? [] : [schedule]
    return connection.all<ScheduleRecordRow>(sql, before, limit, ...own)
  },
  tickRecord: ({ connection }: At, schedule: string, tick: number) =>
    connection.get<ScheduleRecordRow>(SELECT_TICK, schedule, tick),
  madeTicks: ({ connection }: At, schedule: string, from: number, to: number) =>
    connection.all<{ tick: number }>(SELECT_MADE, schedule, from, to).map(({ tick }) => tick),
  jobStatuses({ connection }: At, ids: readonly string[]) {
    type Status = { id: string; open: number; failed: number | null }
    return ids.flatMap((id) => {
      const row = connection.get<Status>(SELECT_STATUS, id)
      return row === undefined ? [] : { id, isOpen: row.open === 1, hasFailed: row.failed === 1 }
    })
  },
}

/** Makes jobs of schedules; `admit` accepts those whose type has rules of admission. */
export function createJobs(
  at: At,
  items: readonly EnqueueItem[],
  requester: Requester,
  admit: (accepted: Accepted) => Enqueued,
): Enqueued[] {
  const { connection, environment, machines, now } = at
  const acceptance = scheduleAcceptance(environment, machines)
  const admitted = (_: unknown, __: number, accepted: Accepted) => admit(accepted)
  const [answers = []] = enqueue(at, connection, now, [{ items, requester }], admitted, acceptance)
  return answers
}
