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
import { TX } from '../apply.ts'
import { statement } from '../connect.ts'
import { isUuid } from '../context.ts'
import { acceptAll, addWithin, answerTaken } from '../enqueue.ts'
import { arrayOf, arraysOf, type Column, namesOf, unnest } from '../rows-at-once.ts'
import type { At } from './at.ts'

const SELECT_NEXT = statement(
  (s) => `
  SELECT look_at FROM ${s}.schedules WHERE look_at IS NOT NULL ORDER BY look_at, name LIMIT 1`,
)
const LOCK_DUE = statement(
  (s) => `
  SELECT * FROM ${s}.schedules WHERE look_at <= $1
  ORDER BY look_at, name LIMIT $2 FOR UPDATE SKIP LOCKED`,
)
const LOCK_ONE = statement((s) => `SELECT * FROM ${s}.schedules WHERE name = $1 FOR UPDATE`)
const SELECT_ONE = statement((s) => `SELECT * FROM ${s}.schedules WHERE name = $1`)
const SELECT_PAGE = statement(
  (s) => `SELECT * FROM ${s}.schedules WHERE name > $1 ORDER BY name LIMIT $2`,
)

const columnsOf = (columns: typeof SCHEDULE_COLUMNS): Column<ScheduleRow>[] =>
  columns.map(([column, type]) => [column, type, (row) => row[column]])

const ALL = columnsOf(SCHEDULE_COLUMNS)
const INSERT = statement(
  (s) => `
  INSERT INTO ${s}.schedules (${namesOf(ALL)})
  VALUES (${ALL.map((_, i) => `$${i + 1}`).join(', ')})
  ON CONFLICT (name) DO NOTHING RETURNING ${TX} AS tx`,
)

/** A schedule can be paused by the end of a job, beside the columns that ticks change. */
const WRITTEN = columnsOf([
  ...MOVING_COLUMNS,
  ...SCHEDULE_COLUMNS.filter(([column]) => /^pause|cursor/.test(column)),
])
const KEY: Column<ScheduleRow>[] = columnsOf(SCHEDULE_COLUMNS.slice(0, 1))
/** The cursor as it was; null if it does not matter. */
const WAS: Column<ScheduleRow> = ['was', 'bigint', () => null]
const setOf = (columns: readonly Column<ScheduleRow>[]) =>
  columns.map(([column]) => `${column} = item.${column}`).join(', ')
const UPDATE = statement(
  (s) => `
  UPDATE ${s}.schedules SET ${setOf(WRITTEN)}
  FROM ${unnest([...KEY, ...WRITTEN, WAS], 1, 'item')}
  WHERE schedules.name = item.name AND (item.was IS NULL OR schedules.cursor_at = item.was)
  RETURNING ${TX} AS tx`,
)

const REPLACE = statement(
  (s) => `
  UPDATE ${s}.schedules
  SET ${ALL.slice(1)
    .map(([column], i) => `${column} = $${i + 2}`)
    .join(', ')}
  WHERE name = $1 RETURNING ${TX} AS tx`,
)
const DELETE = statement((s) => `DELETE FROM ${s}.schedules WHERE name = $1 RETURNING ${TX} AS tx`)

const RECORD: Column<NewRecord>[] = RECORD_COLUMNS.map(([column, type, value]) => [
  column,
  type,
  value,
])
const INSERT_RECORDS = statement(
  (s) => `
  INSERT INTO ${s}.schedule_records (${namesOf(RECORD)})
  SELECT ${namesOf(RECORD)} FROM ${unnest(RECORD, 1, 'item')} ORDER BY place RETURNING number`,
)

const KINDS = { tick: `action IN (${TICK_ACTIONS})`, change: `action NOT IN (${TICK_ACTIONS})` }
const recordsOf = (ofKind: string, ofSchedule: string) =>
  statement(
    (s) => `
    SELECT * FROM ${s}.schedule_records WHERE number < $1 ${ofSchedule} ${ofKind}
    ORDER BY number DESC LIMIT $2`,
  )
const OF_KIND = [undefined, 'tick', 'change'] as const
const RECORDS = new Map(
  OF_KIND.map((kind) => [
    kind,
    [
      recordsOf(kind === undefined ? '' : `AND ${KINDS[kind]}`, ''),
      recordsOf(kind === undefined ? '' : `AND ${KINDS[kind]}`, 'AND schedule = $3'),
    ] as const,
  ]),
)

const SELECT_TICK = statement(
  (s) => `
  SELECT * FROM ${s}.schedule_records
  WHERE schedule = $1 AND tick = $2 AND action IN (${MADE_ACTIONS}) ORDER BY number DESC LIMIT 1`,
)
const SELECT_MADE = statement(
  (s) => `
  SELECT DISTINCT tick FROM ${s}.schedule_records
  WHERE schedule = $1 AND tick BETWEEN $2 AND $3 AND action IN (${MADE_ACTIONS})`,
)

const SELECT_STATUS = statement(
  (s) => `
  SELECT id, (lane NOT IN (${LANES.parked}, ${LANES.ended}))::int AS open,
    (${HAS_FAILED})::int AS failed
  FROM ${s}.jobs WHERE id = ANY ($1::uuid[])`,
)

/** By the number of the transaction a lost reply to its COMMIT is found out. */
function note({ session }: At, rows: readonly { readonly tx: number }[]): number {
  const [first] = rows
  if (first !== undefined) session.wrote ??= { tx: first.tx }
  return rows.length
}

export const SCHEDULES = {
  async nextLook({ session }: At) {
    return (await session.query<{ look_at: number }>(SELECT_NEXT))[0]?.look_at
  },
  lockDueSchedules: ({ session, now }: At, limit: number) =>
    session.query<ScheduleRow>(LOCK_DUE, [now, limit]),
  async lockSchedule({ session }: At, name: string) {
    return (await session.query<ScheduleRow>(LOCK_ONE, [name]))[0]
  },
  async insertSchedule(at: At, row: ScheduleRow) {
    const values = ALL.map(([, , value]) => value(row))
    return note(at, await at.session.query<{ tx: number }>(INSERT, values)) > 0
  },
  async writeSchedules(at: At, rows: readonly ScheduleRow[], cursors?: readonly number[]) {
    if (rows.length === 0) return 0
    const was = arrayOf(rows.map((_, i) => cursors?.[i] ?? null))
    const values = [...arraysOf([...KEY, ...WRITTEN], rows), was]
    return note(at, await at.session.query<{ tx: number }>(UPDATE, values))
  },
  async replaceSchedule(at: At, row: ScheduleRow) {
    const values = ALL.map(([, , value]) => value(row))
    note(at, await at.session.query<{ tx: number }>(REPLACE, values))
  },
  async deleteSchedule(at: At, name: string) {
    note(at, await at.session.query<{ tx: number }>(DELETE, [name]))
  },
  async recordSchedules({ session }: At, records: readonly NewRecord[]) {
    const rows = await session.query<{ number: number }>(INSERT_RECORDS, arraysOf(RECORD, records))
    return rows.map(({ number }) => number)
  },
  async scheduleRow({ session }: At, name: string) {
    return (await session.query<ScheduleRow>(SELECT_ONE, [name]))[0]
  },
  scheduleRows: ({ session }: At, after: string, limit: number) =>
    session.query<ScheduleRow>(SELECT_PAGE, [after, limit]),
  scheduleRecords(
    { session }: At,
    { schedule, kind }: ScheduleRecordFilter,
    before: number,
    limit: number,
  ) {
    const [all, ofOne] = RECORDS.get(kind) as NonNullable<ReturnType<typeof RECORDS.get>>
    return schedule === undefined
      ? session.query<ScheduleRecordRow>(all, [before, limit])
      : session.query<ScheduleRecordRow>(ofOne, [before, limit, schedule])
  },
  async tickRecord({ session }: At, schedule: string, tick: number) {
    return (await session.query<ScheduleRecordRow>(SELECT_TICK, [schedule, tick]))[0]
  },
  async madeTicks({ session }: At, schedule: string, from: number, to: number) {
    const rows = await session.query<{ tick: number }>(SELECT_MADE, [schedule, from, to])
    return rows.map(({ tick }) => tick)
  },
  async jobStatuses({ session }: At, ids: readonly string[]) {
    type Status = { id: string; open: number; failed: number | null }
    const rows = await session.query<Status>(SELECT_STATUS, [arrayOf(ids.filter(isUuid))])
    return rows.map(({ id, open, failed }) => ({
      id,
      isOpen: open === 1,
      hasFailed: failed === 1,
    }))
  },
}

/** Makes jobs of schedules; `admit` accepts those whose type has rules of admission. */
export function createJobs(
  at: At,
  items: readonly EnqueueItem[],
  requester: Requester,
  admit: (jobs: readonly Accepted[]) => Promise<Enqueued[]>,
): Promise<Enqueued[]> {
  const { session, environment, machines, now } = at
  const offers = items.map((item) => ({ item, requester }))
  return acceptAll(scheduleAcceptance(environment, machines), now, offers, {
    add: (jobs) => addWithin(session, jobs),
    answer: (met) => answerTaken(at, session, now, met, false),
    admit,
  })
}
