/**
 * What repairs write. The write lock of the transaction covers everything, so that no table has to
 * be locked before a trigger is dropped.
 */
import type { Fact } from '../../../core/job/facts.ts'
import {
  type Aside,
  DUTY_MAX_MS,
  dutyOf,
  type Handle,
  type RawJob,
  type RepairAuthor,
} from '../../contract/examination.ts'
import type { Ref } from '../../contract/store.ts'
import type { Value } from '../../rows.ts'
import type { Guard, RepairCause } from '../../verbs/operations.ts'
import { appendFact } from '../apply.ts'
import type { At } from './at.ts'
import { stored } from './examine.ts'

const PARK = `
  UPDATE pawl_outbox
  SET state = 'parked', tries = max(tries, 0), run_at = ?, claim = NULL, error = ?
  WHERE eid = ?`

/** Rows are found by their own number; SQLite has one row for each. */
const TABLES = {
  jobs: { name: 'pawl_jobs', key: 'rid' },
  ledger: { name: 'pawl_ledger', key: 'pos' },
  outbox: { name: 'pawl_outbox', key: 'eid' },
} as const

const KEEP = `
  INSERT INTO pawl_quarantined (at, origin, job, content, why, operator, note)
  VALUES (?, ?, ?, ?, ?, ?, ?)`

const SELECT_NOTES = `
  SELECT content FROM pawl_quarantined WHERE origin = ? ORDER BY number DESC LIMIT 1000`

const SELECT_GUARD = `SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = ?`

const COUNT_ENDED = `
  INSERT INTO pawl_ended_counts (queue, state, jobs)
  SELECT queue, state, count(*) FROM pawl_jobs WHERE outcome IS NOT NULL GROUP BY queue, state`

const TAKE_DUTY = `
  INSERT INTO pawl_duties (name, holder, lease_until) VALUES (?1, ?2, ?3)
  ON CONFLICT (name) DO UPDATE SET holder = ?2, lease_until = ?3
  WHERE holder = ?2 OR lease_until NOT BETWEEN ?4 + 1 AND ?4 + ${DUTY_MAX_MS}
  RETURNING place`

const LEAVE_DUTY = 'UPDATE pawl_duties SET place = ?, lease_until = 0 WHERE name = ? AND holder = ?'

export const MEND = {
  lockStored: ({ connection }: At, ref: Ref) => stored(connection, ref),
  lockTables: () => false,
  /** SQLite cannot disable a trigger: it is dropped, and created again from its own text. */
  liftGuard({ connection }: At, guard: Guard) {
    const found = connection.get<{ sql: string }>(SELECT_GUARD, `pawl_${guard}`)
    if (found !== undefined) connection.database.exec(`DROP TRIGGER pawl_${guard}`)
    return found?.sql
  },
  restoreGuard({ connection }: At, _guard: Guard, sql: string) {
    connection.database.exec(sql)
  },
  moveAside(
    { connection, now }: At,
    origin: Aside['origin'],
    handles: readonly Handle[],
    { jobId, why, by: { operator, note } }: RepairCause,
  ) {
    const { name, key } = TABLES[origin]
    for (const handle of handles) {
      const one = `${name} WHERE ${key} = ?`
      const row = connection.get<Record<string, Value>>(`SELECT * FROM ${one}`, handle)
      if (row === undefined) continue
      connection.run(KEEP, now, name, jobId, JSON.stringify(row), why, operator, note)
      connection.run(`DELETE FROM ${one}`, handle)
    }
  },
  parkEffects({ connection, now }: At, handles: readonly Handle[], why: string) {
    for (const eid of handles) connection.run(PARK, now, why, eid)
  },
  writeMended(
    { connection }: At,
    ref: Ref,
    target: RawJob | undefined,
    columns: Readonly<Record<string, Value>>,
    fact: Fact,
  ) {
    const names = Object.keys(columns)
    const values = Object.values(columns)
    if (target === undefined) {
      const marks = names.map(() => '?').join(', ')
      const sql = `INSERT INTO pawl_jobs (${names.join(', ')}, rid) VALUES (${marks}, ?)`
      connection.run(sql, ...values, ref)
    } else {
      const sets = names.map((name) => `${name} = ?`).join(', ')
      connection.run(`UPDATE pawl_jobs SET ${sets} WHERE rid = ?`, ...values, ref)
    }
    appendFact(connection, Number(ref), fact)
  },
  noteRow(at: At, table: string, content: string, why: string, by: RepairAuthor) {
    keepNote(at, `pawl_${table}`, content, why, by)
  },
  keepNote,
  notes: ({ connection }: At, origin: string) =>
    connection.all<{ content: string }>(SELECT_NOTES, origin).map(({ content }) => content),
  recount({ connection }: At) {
    connection.run('DELETE FROM pawl_ended_counts')
    connection.run(COUNT_ENDED)
  },
  takeDuty({ connection, now }: At, name: string, holder: string, leaseMs: number) {
    const values = [name, holder, now + leaseMs, now]
    const taken = connection.get<{ place: string | null }>(TAKE_DUTY, ...values)
    return taken && dutyOf(taken)
  },
  leaveDuty: ({ connection }: At, name: string, holder: string, cursor: string | undefined) =>
    connection.run(LEAVE_DUTY, cursor ?? null, name, holder) > 0,
}

function keepNote(
  { connection, now }: At,
  origin: string,
  content: string,
  why: string,
  { operator, note }: RepairAuthor,
): void {
  connection.run(KEEP, now, origin, null, content, why, operator, note)
}
