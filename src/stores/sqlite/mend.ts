/**
 * What the doctor writes into a SQLite file. The triggers that guard facts and ended jobs stand in
 * its way as in everybody's; it lifts them for the statement that needs it, inside the transaction,
 * and puts them back, so that nobody else ever sees the file without them.
 */
import { LifecycleUnknown } from '../../core/errors.ts'
import { LANES } from '../../core/job/lanes.ts'
import { columnsOf } from '../columns.ts'
import {
  type Aside,
  type Dossier,
  DUTY_MAX_MS,
  type Duty,
  type Mended,
  type Mending,
  type RawJob,
  type Surgeon,
} from '../examination.ts'
import type { Value } from '../rows.ts'
import type { Ref } from '../store.ts'
import { appendFact } from './apply.ts'
import type { Connection } from './connect.ts'
import type { Shared } from './context.ts'
import { dossier } from './examine.ts'
import { setDue } from './isolate.ts'

/** Shows a job to whoever decides, and does what was decided. */
export function mend(
  shared: Shared,
  connection: Connection,
  now: number,
  ref: Ref,
  decide: (dossier: Dossier, now: number) => Mending | undefined,
  by: Surgeon,
): Mending | undefined {
  const seen = dossier(connection, ref)
  const mending = seen && decide(seen, now)
  if (mending === undefined) return undefined
  const { after, aside, parked = [], due = [], why } = mending
  const jobId = after?.job.id ?? seen?.row?.id ?? null
  for (const one of aside) takeAside(connection, now, one, jobId, why, by)
  for (const eid of parked) connection.run(PARK, now, why, eid)
  setDue(connection, now, due.map(Number))
  const isGone = aside.some(({ origin }) => origin === 'jobs')
  const row = isGone ? null : (seen as Dossier).row
  if (after !== undefined) write(shared, connection, Number(ref), row, after)
  return mending
}

function write(
  shared: Shared,
  connection: Connection,
  rid: number,
  row: RawJob | null,
  { lifecycle, job, lane, leaseUntil, fact }: Mended,
): void {
  const machine = shared.machines.numberOf(lifecycle)
  if (machine === undefined) throw new LifecycleUnknown(lifecycle.name, lifecycle.version)
  const columns = Object.entries(columnsOf({ job, machine, lane: LANES[lane], leaseUntil }))
  const names = columns.map(([name]) => name)
  const values = columns.map(([, value]) => value)
  if (row === null) {
    const marks = names.map(() => '?').join(', ')
    const sql = `INSERT INTO pawl_jobs (${names.join(', ')}, rid) VALUES (${marks}, ?)`
    connection.run(sql, ...values, rid)
  } else {
    const sets = names.map((name) => `${name} = ?`).join(', ')
    const update = () =>
      connection.run(`UPDATE pawl_jobs SET ${sets} WHERE rid = ?`, ...values, rid)
    if (row.outcome !== 'succeeded') update()
    else withoutGuard(connection, 'pawl_succeeded_is_final', update)
  }
  appendFact(connection, rid, fact)
}

const PARK = `
  UPDATE pawl_outbox
  SET state = 'parked', tries = max(tries, 0), run_at = ?, claim = NULL, error = ?
  WHERE eid = ?`

const TABLES = {
  jobs: { name: 'pawl_jobs', key: 'rid', guard: 'pawl_live_jobs_are_not_deleted' },
  ledger: { name: 'pawl_ledger', key: 'pos', guard: 'pawl_ledger_is_never_deleted' },
  outbox: { name: 'pawl_outbox', key: 'eid', guard: undefined },
} as const

const KEEP = `
  INSERT INTO pawl_quarantined (at, origin, job, content, why, operator, note)
  VALUES (?, ?, ?, ?, ?, ?, ?)`

/** Moves one row to those that nobody trusts. */
function takeAside(
  connection: Connection,
  now: number,
  { origin, handle }: Aside,
  jobId: string | null,
  why: string,
  { operator, note }: Surgeon,
): void {
  const { name, key, guard } = TABLES[origin]
  const row = connection.get<Record<string, Value>>(
    `SELECT * FROM ${name} WHERE ${key} = ?`,
    handle,
  )
  if (row === undefined) return
  connection.run(KEEP, now, name, jobId, JSON.stringify(row), why, operator, note)
  const remove = () => connection.run(`DELETE FROM ${name} WHERE ${key} = ?`, handle)
  if (guard === undefined) remove()
  else withoutGuard(connection, guard, remove)
}

/** Keeps what an operator took note of. */
export function keepNote(
  connection: Connection,
  now: number,
  origin: string,
  content: string,
  why: string,
  { operator, note }: Surgeon,
): void {
  connection.run(KEEP, now, origin, null, content, why, operator, note)
}

const SELECT_NOTES = `
  SELECT content FROM pawl_quarantined WHERE origin = ? ORDER BY number DESC LIMIT 1000`

/** What was noted of one kind. */
export function notes(connection: Connection, origin: string): string[] {
  return connection.all<{ content: string }>(SELECT_NOTES, origin).map(({ content }) => content)
}

const SELECT_GUARD = `SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = ?`

function withoutGuard(connection: Connection, name: string, work: () => void): void {
  const guard = connection.get<{ sql: string }>(SELECT_GUARD, name)
  if (guard !== undefined) connection.database.exec(`DROP TRIGGER ${name}`)
  work()
  if (guard !== undefined) connection.database.exec(guard.sql)
}

/** Makes the roll-up of ended jobs what the rows say. */
export function recount(connection: Connection): void {
  connection.run('DELETE FROM pawl_ended_counts')
  connection.run(`
    INSERT INTO pawl_ended_counts (queue, state, jobs)
    SELECT queue, state, count(*) FROM pawl_jobs WHERE outcome IS NOT NULL GROUP BY queue, state`)
}

const TAKE_DUTY = `
  INSERT INTO pawl_duties (name, holder, lease_until) VALUES (?1, ?2, ?3)
  ON CONFLICT (name) DO UPDATE SET holder = ?2, lease_until = ?3
  WHERE holder = ?2 OR lease_until NOT BETWEEN ?4 + 1 AND ?4 + ${DUTY_MAX_MS}
  RETURNING place`

/** Takes on what one process does at a time. */
export function takeDuty(
  connection: Connection,
  now: number,
  name: string,
  holder: string,
  leaseMs: number,
): Duty | undefined {
  const taken = connection.get<{ place: string | null }>(
    TAKE_DUTY,
    name,
    holder,
    now + leaseMs,
    now,
  )
  if (taken === undefined) return undefined
  return taken.place === null ? {} : { place: taken.place }
}

const LEAVE_DUTY = 'UPDATE pawl_duties SET place = ?, lease_until = 0 WHERE name = ? AND holder = ?'

/** Notes how far a duty is, and frees it. */
export function leaveDuty(
  connection: Connection,
  name: string,
  holder: string,
  place: string | undefined,
): boolean {
  return connection.run(LEAVE_DUTY, place ?? null, name, holder) > 0
}
