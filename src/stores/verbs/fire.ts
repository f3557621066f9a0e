/**
 * Makes the jobs of ticks that are due. Any worker may do this, also one without the code of the
 * jobs. The rows of schedules are locked, and jobs, records and cursors are written in the same
 * transaction: if the process dies, a tick has no job and will get one, or it has one. Three things
 * each prevent a second job: the lock, the compare-and-set of the cursor, and the key of the job.
 *
 * Locks are taken in the order schedules, then jobs.
 */
import { JobEnded, JobNotFound, PawlError, TransitionRace } from '../../core/errors.ts'
import type { TraceContext } from '../../core/trace.ts'
import { ENGINE } from '../contract/requester.ts'
import type { Firing, TicksOf } from '../contract/schedules.ts'
import type { Answer, Requester } from '../contract/store.ts'
import { ScheduleDamaged } from '../errors.ts'
import { type NewRecord, readSchedule, type ScheduleRow } from '../schedule-rows.ts'
import { cancel } from './apply-command.ts'
import { ScheduleFiring } from './firing.ts'
import type { Tx, Verb } from './operations.ts'

/** After this many jobs, the other schedules are left to a later transaction. */
const JOBS_MAX = 1000
/** When a schedule is looked at again that this process could not read. */
const POSTPONE_MS = 60_000

/** What was found about a row: the schedule, or why it cannot be looked at. */
type Opened = ScheduleFiring | { readonly row: ScheduleRow; readonly error: PawlError }

/** Fires up to `limit` schedules. */
export function* fireSchedules(
  tx: Tx,
  limit: number,
  ticksOf: TicksOf,
  trace?: TraceContext,
): Verb<Firing> {
  const rows = yield* tx.lockDueSchedules(limit)
  if (rows.length === 0) return NOTHING
  yield* tx.refreshMachines()
  const opened = rows.map((row) => openFiring(tx, row, ticksOf))
  const firings = opened.filter((one): one is ScheduleFiring => one instanceof ScheduleFiring)
  const failed = opened.flatMap((one) => (one instanceof ScheduleFiring ? [] : one))
  const { cancelled, done } = yield* settleFirings(tx, firings)
  // This schedule must not hinder the others.
  yield* tx.writeSchedules(failed.map(({ row }) => ({ ...row, look_at: tx.now + POSTPONE_MS })))
  const written = yield* writeFirings(tx, done, { ...ENGINE, ...trace })
  const isFull = rows.length === limit || done.length < firings.length
  return {
    ...written,
    cancelled,
    failed: failed.map(({ row, error }) => ({ schedule: row.name, error })),
    more: isFull || done.some((one) => one.hasMore),
  }
}

/** Nothing was due. */
export const NOTHING: Firing = { records: [], jobs: [], cancelled: [], failed: [], more: false }

/** Reads a row that was locked. */
export function openFiring(tx: Tx, row: ScheduleRow, ticksOf: TicksOf): Opened {
  const read = readSchedule(row)
  if (read === undefined) return { row, error: new ScheduleDamaged(row.name) }
  const { lifecycle, lifecycleVersion } = read.rules.job
  try {
    tx.machines.stored(lifecycle, lifecycleVersion)
    const ticks = ticksOf(read.rules.timing)
    ticks.next(row.cursor_at)
    return new ScheduleFiring(row, read, ticks, tx.now)
  } catch (error) {
    if (error instanceof PawlError) return { row, error }
    throw error
  }
}

/** Looks at open jobs, cancels those that have to be, and plans the ticks of each schedule. */
export function* settleFirings(
  tx: Tx,
  firings: readonly ScheduleFiring[],
): Verb<{ readonly cancelled: readonly Answer[]; readonly done: readonly ScheduleFiring[] }> {
  const looking = firings.filter((one) => one.looksAtJobs)
  const ids = looking.flatMap(({ open }) => open)
  const statuses = ids.length === 0 ? [] : yield* tx.jobStatuses(ids)
  const byId = new Map(statuses.map((status) => [status.id, status]))
  for (const one of looking) one.settle(byId)
  const toCancel = firings.flatMap((one) => one.toCancel)
  const cancelled = toCancel.length === 0 ? [] : yield* cancel(tx, toCancel, ENGINE)
  const closed = new Set(toCancel.filter((_, i) => isClosed(cancelled[i])))
  const done: ScheduleFiring[] = []
  let jobs = 0
  for (const one of firings) {
    if (jobs >= JOBS_MAX) break
    one.closed(closed)
    one.plan(tx)
    jobs += one.items.length
    done.push(one)
  }
  return { cancelled, done }
}

/** Whether a job is no longer open after it was asked to end. */
function isClosed(answer: Answer | undefined): boolean {
  if (answer?.kind !== 'rejected') return answer?.kind === 'done'
  return answer.error instanceof JobEnded || answer.error instanceof JobNotFound
}

/** Makes the jobs of schedules and writes their records and rows. */
export function* writeFirings(
  tx: Tx,
  firings: readonly ScheduleFiring[],
  requester: Requester = ENGINE,
): Verb<Pick<Firing, 'records' | 'jobs'>> {
  const items = firings.flatMap((one) => one.items)
  const answers = items.length === 0 ? [] : yield* tx.createJobs(items, requester)
  let from = 0
  for (const one of firings) {
    const { length } = one.items
    one.answered(answers.slice(from, from + length))
    from += length
  }
  const rows = firings.map((one) => one.after())
  const written = yield* tx.writeSchedules(
    rows,
    firings.map(({ row }) => row.cursor_at),
  )
  if (written < rows.length) throw new TransitionRace('of a schedule')
  const records = yield* writeRecords(
    tx,
    firings.flatMap((one) => one.records),
  )
  const jobs = answers.flatMap((one) => (one.kind === 'created' ? one.job : []))
  return { records, jobs }
}

/** Writes records and returns them with their numbers. */
export function* writeRecords(tx: Tx, records: readonly NewRecord[]): Verb<Firing['records']> {
  if (records.length === 0) return []
  const numbers = yield* tx.recordSchedules(records)
  return records.map((record, i) => ({ number: numbers[i] as number, ...record }))
}
