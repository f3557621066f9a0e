/** What repairs write. */
import { TransitionRace } from '../../../core/errors.ts'
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
import type { Guard, GuardedTable, RepairCause } from '../../verbs/operations.ts'
import { factArrays, LOCK_JOB, positionOf, recordMoved, TX } from '../apply.ts'
import { statement } from '../connect.ts'
import { isUuid } from '../context.ts'
import { arrayOf } from '../rows-at-once.ts'
import type { At } from './at.ts'
import { COUNTER_DRIFT, stored } from './examine.ts'

const SAVEPOINT = statement(() => 'SAVEPOINT undecided')
const ROLLBACK = statement(() => 'ROLLBACK TO SAVEPOINT undecided')

const lockTable = (table: string) =>
  statement((s) => `LOCK TABLE ${s}.${table} IN SHARE ROW EXCLUSIVE MODE`)
const LOCK_TABLES = { jobs: lockTable('jobs'), ledger: lockTable('ledger') }

const LOCK_EFFECTS = statement(
  (s) => `SELECT 1 FROM ${s}.outbox WHERE job = $1 ORDER BY eid FOR UPDATE`,
)

/** The tables of the triggers. */
const GUARDED: Readonly<Record<Guard, GuardedTable>> = {
  succeeded_is_final: 'jobs',
  live_jobs_are_not_deleted: 'jobs',
  ledger_is_never_deleted: 'ledger',
}

/** A disabled trigger refuses nothing, and stays as it is until it is restored. */
const SELECT_GUARD = statement(
  () => `
  SELECT tgenabled AS mode FROM pg_catalog.pg_trigger
  WHERE tgrelid = $1::text::regclass AND tgname = $2 AND tgenabled IN ('O', 'A')`,
)

/** PostgreSQL disables a trigger; SQLite can only drop it. */
const alter = (guard: Guard, action: string) =>
  statement((s) => `ALTER TABLE ${s}.${GUARDED[guard]} ${action} TRIGGER ${guard}`)

const moveAside = (table: Aside['origin'], job: string, key: string, type: string) =>
  statement(
    (s) => `
    WITH gone AS (
      DELETE FROM ${s}.${table} WHERE ${job} = $1 AND ${key} = ANY ($2::${type}[]) RETURNING *
    )
    INSERT INTO ${s}.quarantined (at, origin, job, content, why, operator, note)
    SELECT $3::bigint, '${table}', $1::text, row_to_json(gone)::text, $4::text, $5::text, $6::text
    FROM gone RETURNING ${TX} AS tx`,
  )
const MOVE_ASIDE = {
  jobs: moveAside('jobs', 'id', 'ctid', 'tid'),
  ledger: moveAside('ledger', 'job', 'ctid', 'tid'),
  outbox: moveAside('outbox', 'job', 'eid', 'bigint'),
}

const PARK = statement(
  (s) => `
  UPDATE ${s}.outbox
  SET state = 'parked', tries = greatest(tries, 0), run_at = $1, claim = NULL, error = $2
  WHERE eid = ANY ($3::bigint[])`,
)

const KEEP = statement(
  (s) => `
  INSERT INTO ${s}.quarantined (at, origin, content, why, operator, note)
  VALUES ($1, $2, $3, $4, $5, $6)`,
)

const SELECT_NOTES = statement(
  (s) => `
  SELECT content FROM ${s}.quarantined WHERE origin = $1 ORDER BY number DESC LIMIT 1000`,
)

const updateRow = (names: readonly string[]) => {
  const sets = names.map((name, i) => `${name} = $${i + 1}`)
  const id = names.length + 1
  return statement(
    (s) => `
    WITH moved AS (
      UPDATE ${s}.jobs SET ${sets.join(', ')}, place = greatest(jobs.place, ${positionOf(s)})
      WHERE id = $${id} AND ctid = $${id + 1}::tid RETURNING id, place
    ), recorded AS (${recordMoved(s, id + 2)}
    )
    SELECT ${TX} AS tx, place FROM moved`,
  )
}

/** A row that was lost comes after all facts that are left of its job. */
const insertRow = (names: readonly string[]) => {
  const marks = names.map((_, i) => `$${i + 1}`)
  const id = names.length + 1
  return statement(
    (s) => `
    WITH moved AS (
      INSERT INTO ${s}.jobs (${names.join(', ')}, place)
      VALUES (${marks.join(', ')}, greatest(${positionOf(s)},
        (SELECT max(tx) FROM ${s}.ledger WHERE job = $${id})))
      RETURNING id, place
    ), recorded AS (${recordMoved(s, id + 1)}
    )
    SELECT ${TX} AS tx, place FROM moved`,
  )
}

/** Two processes that count at the same time would both add the difference. */
const LOCK_COUNTS = statement(() => `SELECT pg_advisory_xact_lock(hashtext($1), 2)`)
const RECOUNT = statement(
  (s) => `
  INSERT INTO ${s}.ended_counts (queue, state, jobs)
  SELECT queue, state, actual - counted FROM (${COUNTER_DRIFT(s)}) AS difference`,
)

const TAKE_DUTY = statement(
  (s) => `
  INSERT INTO ${s}.duties (name, holder, lease_until) VALUES ($1, $2, $3)
  ON CONFLICT (name) DO UPDATE SET holder = $2, lease_until = $3
  WHERE duties.holder = $2 OR duties.lease_until NOT BETWEEN $4::bigint + 1 AND $4 + ${DUTY_MAX_MS}
  RETURNING place`,
)

const LEAVE_DUTY = statement(
  (s) => `
  UPDATE ${s}.duties SET place = $1, lease_until = 0 WHERE name = $2 AND holder = $3 RETURNING 1`,
)

export const MEND = {
  async lockStored({ session }: At, ref: Ref) {
    if (!isUuid(ref)) return undefined
    await session.query(SAVEPOINT)
    await session.query(LOCK_JOB, [ref])
    await session.query(LOCK_EFFECTS, [ref])
    return stored(session, ref)
  },
  async lockTables({ session }: At, tables: readonly GuardedTable[]) {
    await session.query(ROLLBACK)
    for (const table of tables) await session.query(LOCK_TABLES[table])
    return true
  },
  async liftGuard({ session, schema }: At, guard: Guard) {
    const values = [`${schema}.${GUARDED[guard]}`, guard]
    const [found] = await session.query<{ mode: string }>(SELECT_GUARD, values)
    if (found !== undefined) await session.query(alter(guard, 'DISABLE'))
    return found?.mode
  },
  async restoreGuard({ session }: At, guard: Guard, mode: string) {
    await session.query(alter(guard, mode === 'A' ? 'ENABLE ALWAYS' : 'ENABLE'))
  },
  async moveAside(
    { session, now }: At,
    origin: Aside['origin'],
    handles: readonly Handle[],
    { ref, why, by: { operator, note } }: RepairCause,
  ) {
    if (handles.length === 0) return
    const values = [ref, arrayOf(handles), now, why, operator, note]
    const [moved] = await session.query<{ tx: number }>(MOVE_ASIDE[origin], values)
    if (moved !== undefined) session.wrote = { tx: moved.tx }
  },
  async parkEffects({ session, now }: At, handles: readonly Handle[], why: string) {
    await session.query(PARK, [now, why, arrayOf(handles)])
  },
  async writeMended(
    { session }: At,
    ref: Ref,
    target: RawJob | undefined,
    columns: Readonly<Record<string, Value>>,
    fact: Fact,
  ) {
    const names = Object.keys(columns)
    const sql = target === undefined ? insertRow(names) : updateRow(names)
    const values = [
      ...Object.values(columns),
      ref,
      ...(target === undefined ? [] : [target.handle]),
      ...factArrays([{ fact, payload: null }]),
    ]
    const [moved] = await session.query<{ tx: number; place: number }>(sql, values)
    if (moved === undefined) throw new TransitionRace(String(ref))
    const { tx, place: position } = moved
    session.wrote = { tx, fact: { job: fact.jobId, seq: fact.seq, position } }
  },
  noteRow: keepNote,
  keepNote,
  async notes({ session }: At, origin: string) {
    const rows = await session.query<{ content: string }>(SELECT_NOTES, [origin])
    return rows.map(({ content }) => content)
  },
  /**
   * Adds what the roll-up of ended jobs differs by from the rows. Both are read as of one moment,
   * and a transaction that ends jobs writes both at once, so that others can go on meanwhile.
   */
  async recount({ session, schema }: At) {
    await session.query(LOCK_COUNTS, [`pawl recount ${schema}`])
    await session.query(RECOUNT)
  },
  async takeDuty({ session, now }: At, name: string, holder: string, leaseMs: number) {
    const values = [name, holder, now + leaseMs, now]
    const [taken] = await session.query<{ place: string | null }>(TAKE_DUTY, values)
    return taken && dutyOf(taken)
  },
  async leaveDuty({ session }: At, name: string, holder: string, cursor: string | undefined) {
    return (await session.query(LEAVE_DUTY, [cursor ?? null, name, holder])).length > 0
  },
}

async function keepNote(
  { session, now }: At,
  origin: string,
  content: string,
  why: string,
  { operator, note }: RepairAuthor,
): Promise<void> {
  await session.query(KEEP, [now, origin, content, why, operator, note])
}
