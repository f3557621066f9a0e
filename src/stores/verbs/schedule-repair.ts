/**
 * Compares a schedule with its records, and restores it. Records are never changed, so they say
 * what the schedule should be: its definition is that of the last `put`, its pause that of the last
 * `pause` or `resume`, and its cursor is not behind the last tick that was recorded.
 */
import { CLOCK_SLACK_MS } from '../../core/job/fence.ts'
import { decodeBuffer, decodeIds, decodeRules } from '../../core/schedule/definition.ts'
import type { TickSource } from '../../core/schedule/ticks.ts'
import type { RepairAuthor } from '../contract/examination.ts'
import type { ScheduleRecord, TicksOf } from '../contract/schedules.ts'
import { ScheduleDamaged } from '../errors.ts'
import { type ScheduleRow, scheduleMark, toRecord } from '../schedule-rows.ts'
import type { Tx, Verb } from './operations.ts'

/** How many of the last records are read. */
const READ_MAX = 1000
/** A schedule that a process cannot read is postponed by a minute. */
const POSTPONED_MS = 120_000

/** The row that the records give, and the ticks of its definition. */
interface Expected {
  readonly row: ScheduleRow
  readonly ticks: TickSource
}

/** What is wrong with a schedule; empty if nothing is. */
export function* findScheduleFaults(tx: Tx, name: string, ticksOf: TicksOf): Verb<string[]> {
  const row = yield* tx.scheduleRow(name)
  const expected = yield* expectedOf(tx, name, row, ticksOf)
  if (expected === undefined) return row === undefined ? [] : ['no record says that it was put']
  if (row === undefined) return ['its row is gone']
  return faultsBetween(row, expected, tx.now)
}

function faultsBetween(row: ScheduleRow, { row: wanted, ticks }: Expected, now: number): string[] {
  const faults: string[] = []
  const find = (isFault: boolean, what: string) => {
    if (isFault) faults.push(what)
  }
  const isSame = row.definition === wanted.definition && row.input === wanted.input
  const isMarked = row.mark === wanted.mark && row.version === wanted.version
  find(!isSame || !isMarked || row.origin !== wanted.origin, 'its definition is damaged')
  find(decodeBuffer(row.buffer) === undefined, 'the ticks that wait cannot be read')
  find(decodeIds(row.open_jobs) === undefined, 'its open jobs cannot be read')
  find(row.paused_at !== wanted.paused_at, 'its pause is not that of its last record')
  find(row.cursor_at > now + CLOCK_SLACK_MS, 'its cursor is ahead of time')
  find(row.cursor_at < wanted.cursor_at, 'its cursor is behind its last tick')
  const forgotten = ticks.next(wanted.cursor_at)
  const isForgotten = forgotten !== undefined && forgotten <= row.cursor_at
  find(isForgotten, 'ticks before its cursor have neither a job nor a record')
  find(row.next_at !== (ticks.next(row.cursor_at) ?? null), 'its next time is not its next tick')
  const lookAt = row.look_at ?? Number.POSITIVE_INFINITY
  const isLate = row.paused_at === null && row.next_at !== null
  find(isLate && lookAt > Math.max(row.next_at, now) + POSTPONED_MS, 'it is not looked at')
  find(row.paused_at !== null && row.look_at !== null, 'it is looked at although it is paused')
  return faults
}

/** Restores a schedule from its records, and keeps a note of the row as it was. */
export function* restoreSchedule(
  tx: Tx,
  name: string,
  ticksOf: TicksOf,
  by: RepairAuthor,
): Verb<void> {
  const row = yield* tx.lockSchedule(name)
  const expected = yield* expectedOf(tx, name, row, ticksOf)
  if (expected === undefined) throw new ScheduleDamaged(name)
  if (row === undefined) yield* tx.insertSchedule(expected.row)
  else yield* tx.replaceSchedule(expected.row)
  yield* tx.noteRow('schedules', JSON.stringify(row ?? { name }), RESTORED, by)
}

const RESTORED = 'the schedule was not what its records say'

/** The row that the records give; `undefined` if the schedule was never put, or was removed. */
function* expectedOf(
  tx: Tx,
  name: string,
  row: ScheduleRow | undefined,
  ticksOf: TicksOf,
): Verb<Expected | undefined> {
  const last = Number.MAX_SAFE_INTEGER
  const changes = (yield* tx.scheduleRecords({ schedule: name, kind: 'change' }, last, READ_MAX))
    .map(toRecord)
    .filter(({ action }) => action === 'put' || action === 'remove' || isPause(action))
  const put = changes.find(({ action }) => action === 'put' || action === 'remove')
  const kept = put?.action === 'put' ? keptIn(put.after) : undefined
  const rules = kept && decodeRules(kept.definition)
  if (put === undefined || kept === undefined || rules === undefined) return undefined
  const made = yield* tx.scheduleRecords({ schedule: name, kind: 'tick' }, last, READ_MAX)
  // An operator may have made up for ticks that the cursor has not reached.
  const isBackfill = ({ action, reason }: (typeof made)[number]) =>
    action === 'backfilled' || reason?.startsWith('backfill ')
  const passed = made.filter((record) => !isBackfill(record))
  const recorded = passed.map((record) => record.last_tick ?? record.tick ?? 0)
  const buffer = decodeBuffer(row?.buffer ?? '[]') ?? []
  const waiting = buffer.filter(({ isBackfill }) => !isBackfill).map(({ tick }) => tick)
  const cursor = Math.max(put.at, ...recorded, ...waiting)
  const ticks = ticksOf(rules.timing)
  const next = ticks.next(cursor) ?? null
  const paused = pauseIn(changes)
  const openJobs = row !== undefined && decodeIds(row.open_jobs) !== undefined && row.open_jobs
  const expected: ScheduleRow = {
    name,
    ...kept,
    mark: scheduleMark(kept.definition, kept.input),
    cursor_at: cursor,
    next_at: next,
    look_at: paused.paused_at !== null ? null : buffer.length > 0 ? tx.now : next,
    buffer: buffer.length > 0 && row !== undefined ? row.buffer : '[]',
    open_jobs: openJobs || '[]',
    last_tick: recorded.length === 0 ? null : Math.max(...recorded),
    last_job: made.find(({ job, action }) => job !== null && action !== 'skipped')?.job ?? null,
    ...paused,
    created_at: row?.created_at ?? put.at,
    changed_at: put.at,
  }
  return { row: expected, ticks }
}

function isPause(action: ScheduleRecord['action']): boolean {
  return action === 'pause' || action === 'resume'
}

/** The pause of the last record that paused or resumed the schedule, or removed it. */
function pauseIn(changes: readonly ScheduleRecord[]) {
  const last = changes.find(({ action }) => isPause(action) || action === 'remove')
  if (last?.action !== 'pause') return { paused_at: null, paused_by: null, pause_note: null }
  const { at, operator, actor, note = null } = last
  return { paused_at: at, paused_by: operator ?? actor, pause_note: note }
}

type Kept = Pick<ScheduleRow, 'definition' | 'input' | 'origin' | 'version'>

function keptIn(text: string | undefined): Kept | undefined {
  try {
    const { definition, input, origin, version } = JSON.parse(text ?? '') as Kept
    return { definition, input, origin, version }
  } catch {
    return undefined
  }
}
