/** Schedules and their records as both databases store them. */
import { createHash } from 'node:crypto'
import { NOTE_MAX, name, optional, text } from '../core/checks.ts'
import { checkFields, type FieldChecks } from '../core/fields.ts'
import type { ActorKind } from '../core/job/facts.ts'
import {
  type BufferedTick,
  decodeBuffer,
  decodeIds,
  decodeRules,
  encodeBuffer,
  encodeRules,
  type ScheduleRules,
} from '../core/schedule/definition.ts'
import { scheduleName } from '../core/schedule/keys.ts'
import { checkRequester } from './contract/requester.ts'
import { check } from './contract/requests.ts'
import {
  type NewSchedule,
  type Schedule,
  type ScheduleOrigin,
  type ScheduleRecord,
  type ScheduleRecordFilter,
  TICK_RESULTS,
} from './contract/schedules.ts'
import type { Requester } from './contract/store.ts'
import type { Value } from './rows.ts'

/** A row of `schedules`. */
export interface ScheduleRow {
  readonly name: string
  readonly definition: string
  readonly input: string
  /** The checksum of definition and input. */
  readonly mark: string
  readonly origin: ScheduleOrigin
  readonly version: number
  readonly cursor_at: number
  readonly next_at: number | null
  readonly look_at: number | null
  readonly buffer: string
  readonly open_jobs: string
  readonly last_tick: number | null
  readonly last_job: string | null
  readonly paused_at: number | null
  readonly paused_by: string | null
  readonly pause_note: string | null
  readonly created_at: number
  readonly changed_at: number
}

/** The columns of a schedule and their types on PostgreSQL; the first is the key. */
export const SCHEDULE_COLUMNS: readonly (readonly [keyof ScheduleRow, 'text' | 'bigint'])[] = [
  ['name', 'text'],
  ['definition', 'text'],
  ['input', 'text'],
  ['mark', 'text'],
  ['origin', 'text'],
  ['version', 'bigint'],
  ['cursor_at', 'bigint'],
  ['next_at', 'bigint'],
  ['look_at', 'bigint'],
  ['buffer', 'text'],
  ['open_jobs', 'text'],
  ['last_tick', 'bigint'],
  ['last_job', 'text'],
  ['paused_at', 'bigint'],
  ['paused_by', 'text'],
  ['pause_note', 'text'],
  ['created_at', 'bigint'],
  ['changed_at', 'bigint'],
]

/** The columns that change when ticks are dealt with. */
export const MOVING_COLUMNS = SCHEDULE_COLUMNS.filter(([column]) =>
  ['next_at', 'look_at', 'buffer', 'open_jobs', 'last_tick', 'last_job'].includes(column),
)

/** A row of `schedule_records`. */
export interface ScheduleRecordRow {
  readonly number: number
  readonly at: number
  readonly schedule: string
  readonly action: ScheduleRecord['action']
  readonly actor: ActorKind
  readonly operator: string | null
  readonly note: string | null
  readonly tick: number | null
  readonly last_tick: number | null
  readonly ticks: number | null
  readonly previous: number | null
  readonly job: string | null
  readonly reason: string | null
  readonly before: string | null
  readonly after: string | null
}

/** A record before it has a number. */
export type NewRecord = Omit<ScheduleRecord, 'number'>

/** The columns of a record but its number, their types on PostgreSQL, and their values. */
export const RECORD_COLUMNS: readonly (readonly [
  column: Exclude<keyof ScheduleRecordRow, 'number'>,
  type: 'text' | 'bigint',
  value: (record: NewRecord) => Value,
])[] = [
  ['at', 'bigint', ({ at }) => at],
  ['schedule', 'text', ({ schedule }) => schedule],
  ['action', 'text', ({ action }) => action],
  ['actor', 'text', ({ actor }) => actor],
  ['operator', 'text', ({ operator }) => operator ?? null],
  ['note', 'text', ({ note }) => note ?? null],
  ['tick', 'bigint', ({ tick }) => tick ?? null],
  ['last_tick', 'bigint', ({ lastTick }) => lastTick ?? null],
  ['ticks', 'bigint', ({ ticks }) => ticks ?? null],
  ['previous', 'bigint', ({ previous }) => previous ?? null],
  ['job', 'text', ({ job }) => job ?? null],
  ['reason', 'text', ({ reason }) => reason ?? null],
  ['before', 'text', ({ before }) => before ?? null],
  ['after', 'text', ({ after }) => after ?? null],
]

/** A record as it was stored. */
export function toRecord(row: ScheduleRecordRow): ScheduleRecord {
  const { number, at, schedule, action, actor } = row
  const fields = {
    operator: row.operator,
    note: row.note,
    tick: row.tick,
    lastTick: row.last_tick,
    ticks: row.ticks,
    previous: row.previous,
    job: row.job,
    reason: row.reason,
    before: row.before,
    after: row.after,
  }
  const given = Object.entries(fields).filter(([, value]) => value !== null)
  return { number, at, schedule, action, actor, ...Object.fromEntries(given) }
}

/** Actions of records of ticks, as a list in SQL. */
export const TICK_ACTIONS = TICK_RESULTS.map((result) => `'${result}'`).join(', ')

/** Actions of records of ticks that have a job, as a list in SQL. */
export const MADE_ACTIONS = ['fired', 'late', 'backfilled'].map((one) => `'${one}'`).join(', ')

/** The checksum of a definition and its input. */
export function scheduleMark(definition: string, input: string): string {
  return createHash('sha256').update(`${definition}\n${input}`).digest('hex').slice(0, 16)
}

/** What a row says, or `undefined` if it is damaged. */
export interface ReadSchedule {
  readonly rules: ScheduleRules
  readonly buffer: readonly BufferedTick[]
  readonly open: readonly string[]
}

/** Reads a row without trusting it. */
export function readSchedule(row: ScheduleRow): ReadSchedule | undefined {
  if (row.mark !== scheduleMark(row.definition, row.input)) return undefined
  const rules = decodeRules(row.definition)
  const buffer = decodeBuffer(row.buffer)
  const open = decodeIds(row.open_jobs)
  if (rules === undefined || buffer === undefined || open === undefined) return undefined
  return { rules, buffer, open }
}

/** A schedule as callers see it. */
export function toSchedule(row: ScheduleRow): Schedule {
  const read = readSchedule(row)
  return {
    name: row.name,
    rules: read?.rules,
    input: row.input,
    origin: row.origin,
    version: row.version,
    cursor: row.cursor_at,
    nextAt: row.next_at ?? undefined,
    buffered: read?.buffer.map(({ tick }) => tick) ?? [],
    open: read?.open ?? [],
    lastTick: row.last_tick ?? undefined,
    lastJob: row.last_job ?? undefined,
    pausedAt: row.paused_at ?? undefined,
    pausedBy: row.paused_by ?? undefined,
    pauseNote: row.pause_note ?? undefined,
    createdAt: row.created_at,
    changedAt: row.changed_at,
  }
}

/** The row of a schedule that is new at this time. */
export function newRow(
  { name, rules, input, origin }: NewSchedule,
  now: number,
  next: number | undefined,
): ScheduleRow {
  const definition = encodeRules(rules)
  return {
    name,
    definition,
    input,
    mark: scheduleMark(definition, input),
    origin,
    version: 1,
    cursor_at: now,
    next_at: next ?? null,
    look_at: next ?? null,
    buffer: encodeBuffer([]),
    open_jobs: '[]',
    last_tick: null,
    last_job: null,
    paused_at: null,
    paused_by: null,
    pause_note: null,
    created_at: now,
    changed_at: now,
  }
}

/** What the record of a `put` keeps of a row: the doctor restores a definition from it. */
export function keptOf({ definition, input, origin, version }: ScheduleRow): string {
  return JSON.stringify({ definition, input, origin, version })
}

/** The parts of a record that say who asked. */
export function authorOf({ actor, operator, note }: Requester) {
  return {
    actor,
    ...(operator !== undefined && { operator }),
    ...(note !== undefined && { note }),
  }
}

/** Throws `CommandInvalid` if a change cannot be made. An operator needs a name and a reason. */
export function checkChange(schedule: string, requester: Requester): void {
  const { actor, operator, note } = checkRequester(requester)
  const isOperator = actor === 'operator'
  const noteRule = (value: string | undefined) => text(value, NOTE_MAX)
  check([
    ['name', scheduleName(schedule)],
    ['operator', isOperator ? name(operator) : optional(operator, name)],
    ['note', isOperator ? noteRule(note) : optional(note, noteRule)],
  ])
}

const FILTER: FieldChecks<ScheduleRecordFilter> = {
  schedule: name,
  kind: (kind: string) =>
    kind === 'tick' || kind === 'change' ? undefined : "must be 'tick' or 'change'",
}

/** Throws `CommandInvalid` if a filter of records is not one. */
export function checkRecordFilter(filter: ScheduleRecordFilter): void {
  checkFields(filter, FILTER, { what: 'filter', refuseUndefined: true })
}
