/** Stores, changes and reads schedules; `fire.ts` makes the jobs of their ticks. */
import { CommandInvalid, type PawlError } from '../../core/errors.ts'
import { runKey } from '../../core/schedule/keys.ts'
import { BUFFER_MAX } from '../../core/schedule/overlap.ts'
import { listTicks } from '../../core/schedule/ticks.ts'
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
  TicksOf,
} from '../contract/schedules.ts'
import type { Page, Requester } from '../contract/store.ts'
import { ScheduleNotFound } from '../errors.ts'
import { pageSizeOf } from '../queue-records.ts'
import {
  authorOf,
  keptOf,
  type NewRecord,
  newRow,
  type ScheduleRow,
  toRecord,
  toSchedule,
} from '../schedule-rows.ts'
import { NOTHING, openFiring, settleFirings, writeFirings, writeRecords } from './fire.ts'
import { itemOf, ScheduleFiring } from './firing.ts'
import type { Tx, Verb } from './operations.ts'

/** How many ticks one backfill may have. */
const BACKFILL_MAX = BUFFER_MAX

/** Whether a stored schedule says the same; a schedule of the code is not taken over by `put`. */
export function isSame(row: ScheduleRow, asked: ScheduleRow): boolean {
  const isOwned = row.origin === asked.origin || asked.origin === 'program'
  return row.definition === asked.definition && row.mark === asked.mark && isOwned
}

/** Stores a schedule; a changed one counts from now. */
export function* putSchedule(
  tx: Tx,
  schedule: NewSchedule,
  ticksOf: TicksOf,
  requester: Requester,
): Verb<ScheduleChange<PutResult>> {
  const next = ticksOf(schedule.rules.timing).next(tx.now)
  if (next === undefined) throw new CommandInvalid('cron', 'never comes: it has no next time')
  const asked = newRow(schedule, tx.now, next)
  const record = {
    at: tx.now,
    schedule: asked.name,
    action: 'put',
    ...authorOf(requester),
  } as const
  if (yield* tx.insertSchedule(asked)) {
    const records = yield* writeRecords(tx, [{ ...record, after: keptOf(asked) }])
    return { ...NOTHING, records, result: { kind: 'created', schedule: toSchedule(asked) } }
  }
  const row = yield* tx.lockSchedule(asked.name)
  // It was removed meanwhile, which only a retry can see.
  if (row === undefined) throw new ScheduleNotFound(asked.name)
  if (isSame(row, asked)) {
    return { ...NOTHING, result: { kind: 'same', schedule: toSchedule(row) } }
  }
  const settled = yield* settleUp(tx, row, ticksOf, 'changed')
  const changed: ScheduleRow = {
    ...settled.row,
    definition: asked.definition,
    input: asked.input,
    mark: asked.mark,
    origin: asked.origin,
    version: row.version + 1,
    cursor_at: Math.max(settled.row.cursor_at, tx.now),
    next_at: next,
    look_at: settled.row.paused_at === null ? Math.min(next, settled.row.look_at ?? next) : null,
    changed_at: tx.now,
  }
  yield* tx.replaceSchedule(changed)
  const change: NewRecord = { ...record, before: keptOf(row), after: keptOf(changed) }
  const records = [...settled.firing.records, ...(yield* writeRecords(tx, [change]))]
  const result: PutResult = { kind: 'changed', schedule: toSchedule(changed) }
  return { ...settled.firing, records, result }
}

/**
 * Deals with all ticks up to now: makes jobs of those that are due, and records the others as
 * missed. A schedule that cannot be read has no ticks.
 */
function* settleUp(
  tx: Tx,
  row: ScheduleRow,
  ticksOf: TicksOf,
  reason: string,
): Verb<{ readonly row: ScheduleRow; readonly firing: Firing }> {
  const opened = openFiring(tx, row, ticksOf)
  if (!(opened instanceof ScheduleFiring)) return { row, firing: NOTHING }
  const isPaused = opened.isPaused
  const { cancelled } = isPaused ? NOTHING : yield* settleFirings(tx, [opened])
  opened.missRest(isPaused ? 'paused' : reason)
  const written = yield* writeFirings(tx, [opened])
  return { row: opened.after(), firing: { ...NOTHING, ...written, cancelled } }
}

/** Stops making jobs of ticks; returns `undefined` if the schedule is paused already. */
export function* pauseSchedule(
  tx: Tx,
  name: string,
  requester: Requester,
): Verb<ScheduleChange<ScheduleRecord | undefined>> {
  const row = yield* lockOrThrow(tx, name)
  if (row.paused_at !== null) return { ...NOTHING, result: undefined }
  const { operator, actor, note } = requester
  yield* tx.replaceSchedule({
    ...row,
    paused_at: tx.now,
    paused_by: operator ?? actor,
    pause_note: note ?? null,
    look_at: null,
  })
  const result = yield* recordChange(tx, { schedule: name, action: 'pause' }, requester)
  return { ...NOTHING, records: [result], result }
}

/** Makes jobs of ticks again, from now on. */
export function* resumeSchedule(
  tx: Tx,
  name: string,
  ticksOf: TicksOf,
  requester: Requester,
): Verb<ScheduleChange<ScheduleRecord | undefined>> {
  const row = yield* lockOrThrow(tx, name)
  if (row.paused_at === null) return { ...NOTHING, result: undefined }
  const opened = openFiring(tx, row, ticksOf)
  if (!(opened instanceof ScheduleFiring)) throw opened.error
  opened.missRest('paused')
  const written = yield* writeFirings(tx, [opened])
  const after = opened.after()
  const hasBuffer = after.buffer !== '[]'
  yield* tx.replaceSchedule({
    ...after,
    paused_at: null,
    paused_by: null,
    pause_note: null,
    look_at: hasBuffer ? tx.now : after.next_at,
  })
  const result = yield* recordChange(tx, { schedule: name, action: 'resume' }, requester)
  return { ...NOTHING, ...written, records: [...written.records, result], result }
}

/** Removes a schedule. Ticks that have passed without a job are recorded as missed. */
export function* removeSchedule(
  tx: Tx,
  name: string,
  ticksOf: TicksOf,
  requester: Requester,
): Verb<ScheduleChange<ScheduleRecord>> {
  const row = yield* lockOrThrow(tx, name)
  const opened = openFiring(tx, row, ticksOf)
  let records: readonly ScheduleRecord[] = []
  if (opened instanceof ScheduleFiring) {
    opened.missRest(opened.isPaused ? 'paused' : 'removed')
    opened.dropBuffer('removed')
    records = yield* writeRecords(tx, opened.records)
  }
  yield* tx.deleteSchedule(name)
  const change = { schedule: name, action: 'remove', before: keptOf(row) } as const
  const result = yield* recordChange(tx, change, requester)
  return { ...NOTHING, records: [...records, result], result }
}

/** Makes a job now that belongs to no tick. */
export function* runSchedule(tx: Tx, name: string, requester: Requester): Verb<Firing> {
  const row = yield* lockOrThrow(tx, name)
  yield* tx.refreshMachines()
  const opened = openFiring(tx, row, NO_TICKS)
  if (!(opened instanceof ScheduleFiring)) throw opened.error
  const jobId = tx.environment.ids.next()
  const item = itemOf(tx, opened.rules, row.input, { jobId, key: runKey(name, jobId) })
  const [answer] = yield* tx.createJobs([item], requester)
  if (answer?.kind === 'rejected') throw answer.error
  const open = JSON.stringify([...opened.open, jobId])
  yield* tx.replaceSchedule({ ...row, open_jobs: open, last_job: jobId })
  const change = { schedule: name, action: 'run', job: jobId } as const
  const record = yield* recordChange(tx, change, requester)
  return { ...NOTHING, records: [record], jobs: answer?.kind === 'created' ? [answer.job] : [] }
}

/** For verbs that do not look at ticks. */
const NO_TICKS: TicksOf = () => ({ next: () => undefined })

/** Makes up for ticks that have passed. A tick that has a job keeps it. */
export function* backfillSchedule(
  tx: Tx,
  name: string,
  { from, to, overlap, dryRun }: BackfillRequest,
  ticksOf: TicksOf,
  requester: Requester,
): Verb<Backfill> {
  const row = yield* lockOrThrow(tx, name)
  yield* tx.refreshMachines()
  const opened = openFiring(tx, row, ticksOf)
  if (!(opened instanceof ScheduleFiring)) throw opened.error
  const source = ticksOf(opened.rules.timing)
  const passed = listTicks(source, from - 1, Math.min(to, tx.now), BACKFILL_MAX + 1)
  const made = new Set(yield* tx.madeTicks(name, from, to))
  const ticks = passed.filter((tick) => !made.has(tick) && !opened.isWaiting(tick))
  const existing = passed.filter((tick) => !ticks.includes(tick))
  const fault = passed.length > BACKFILL_MAX ? TOO_MANY : opened.roomFault(ticks.length, overlap)
  if (fault !== undefined) throw fault
  const planned = { ...NOTHING, ticks, existing }
  if (dryRun || ticks.length === 0) return planned
  for (const tick of ticks) {
    if (overlap === 'bufferAll') opened.wait({ tick, previous: null, isBackfill: true })
    else opened.make(tx, tick, null, 'backfilled', requester)
  }
  const written = yield* writeFirings(tx, [opened], requester)
  const after = JSON.stringify({ from, to, overlap, ticks: ticks.length })
  const change = { schedule: name, action: 'backfill', after } as const
  const record = yield* recordChange(tx, change, requester)
  return { ...planned, ...written, records: [...written.records, record] }
}

const TOO_MANY: PawlError = new CommandInvalid(
  'to',
  `must not be so late: there are more than ${BACKFILL_MAX} ticks`,
  'Backfill a shorter time, and repeat it for the rest.',
)

function* lockOrThrow(tx: Tx, name: string): Verb<ScheduleRow> {
  const row = yield* tx.lockSchedule(name)
  if (row === undefined) throw new ScheduleNotFound(name)
  return row
}

function* recordChange(
  tx: Tx,
  change: Pick<NewRecord, 'schedule' | 'action' | 'job' | 'before' | 'after'>,
  requester: Requester,
): Verb<ScheduleRecord> {
  const [record] = yield* writeRecords(tx, [{ at: tx.now, ...change, ...authorOf(requester) }])
  return record as ScheduleRecord
}

/** Schedules by name. */
export function* listSchedules(
  tx: Tx,
  { limit, after = '' }: { readonly limit?: number; readonly after?: string },
): Verb<Page<Schedule>> {
  const size = pageSizeOf(limit)
  const rows = yield* tx.scheduleRows(after, size + 1)
  const items = rows.slice(0, size).map(toSchedule)
  const last = items.at(-1)
  return rows.length > size && last !== undefined ? { items, next: last.name } : { items }
}

/** Records, newest first. */
export function* listScheduleRecords(
  tx: Tx,
  filter: ScheduleRecordFilter,
  { limit, after }: { readonly limit?: number; readonly after?: string },
): Verb<Page<ScheduleRecord>> {
  const size = pageSizeOf(limit)
  const before = after === undefined ? Number.MAX_SAFE_INTEGER : Number(after)
  const rows = yield* tx.scheduleRecords(filter, before, size + 1)
  const items = rows.slice(0, size).map(toRecord)
  const last = items.at(-1)
  return rows.length > size && last !== undefined ? { items, next: String(last.number) } : { items }
}
