/**
 * What the doctor writes into a schema. The triggers that guard facts and ended jobs stand in its
 * way as in everybody's; it lifts one for the statement that needs it, inside the transaction, and
 * puts it back, so that nobody else ever sees the table without it.
 *
 * Lifting a trigger waits for all who write to its table. Whoever waited for them with the row of a
 * job locked might be what they wait for. So the row is let go, the tables are locked, and
 * everything is looked at and decided anew.
 */
import { LifecycleUnknown, TransitionRace } from '../../core/errors.ts'
import { LANES } from '../../core/job/lanes.ts'
import { columnsOf } from '../columns.ts'
import {
  type Aside,
  type Dossier,
  DUTY_MAX_MS,
  type Duty,
  type Handle,
  type Mended,
  type Mending,
  type RawJob,
  type Surgeon,
} from '../examination.ts'
import type { Value } from '../rows.ts'
import type { Ref } from '../store.ts'
import { factArrays, LOCK_JOB, placeOf, recordMoved, TX } from './apply.ts'
import { type OwnSession, type Session, statement } from './connect.ts'
import { isUuid, type Shared } from './context.ts'
import { COUNTER_DRIFT, dossier } from './examine.ts'
import { setDue } from './isolate.ts'
import { arrayOf } from './rows-at-once.ts'

/** What a mending needs. */
export interface Operation {
  readonly shared: Shared
  /** Its name as statements need it. */
  readonly schema: string
  readonly session: OwnSession
  readonly now: number
  readonly ref: Ref
  readonly decide: (dossier: Dossier, now: number) => Mending | undefined
  readonly by: Surgeon
}

type Origin = Aside['origin']

/** What was seen, what was decided on it, and what follows from that for each table. */
interface Plan {
  readonly seen: Dossier
  readonly mending: Mending
  /** The row that is written over; nothing where one is inserted. */
  readonly target: RawJob | undefined
  readonly columns: Readonly<Record<string, Value>>
  readonly guarded: {
    readonly removedJobs: boolean
    readonly removedFacts: boolean
    readonly target: boolean
  }
}

/** Shows a job to whoever decides, and does what was decided. */
export async function mend(operation: Operation): Promise<Mending | undefined> {
  const { session, ref } = operation
  if (!isUuid(ref)) return undefined
  await session.run('SAVEPOINT undecided')
  let plan = await makePlan(operation)
  const tables = plan === undefined ? [] : guardedTables(plan)
  if (tables.length > 0) {
    await session.run('ROLLBACK TO SAVEPOINT undecided')
    for (const table of tables) await session.query(LOCK_TABLES[table])
    plan = await makePlan(operation)
  }
  if (plan === undefined) return undefined
  await perform(operation, plan)
  return plan.mending
}

const lockTable = (table: string) =>
  statement((s) => `LOCK TABLE ${s}.${table} IN SHARE ROW EXCLUSIVE MODE`)
const LOCK_TABLES = { jobs: lockTable('jobs'), ledger: lockTable('ledger') }

const LOCK_EFFECTS = statement(
  (s) => `SELECT 1 FROM ${s}.outbox WHERE job = $1 ORDER BY eid FOR UPDATE`,
)

/** Locks everything that there is of a job and can change, and has it decided on. */
async function makePlan(operation: Operation): Promise<Plan | undefined> {
  const { shared, session, now, ref, decide } = operation
  await session.query(LOCK_JOB, [ref])
  await session.query(LOCK_EFFECTS, [ref])
  const seen = await dossier(session, ref as string)
  const mending = seen && decide(seen, now)
  if (mending === undefined) return undefined
  const { row, twins } = seen as Dossier
  const rows = row === null ? [] : [row, ...twins]
  const removed = new Set(handlesOf(mending, 'jobs'))
  const left = rows.filter(({ handle }) => !removed.has(handle))
  const columns = mending.after === undefined ? {} : mendedColumns(shared, mending.after)
  const target = mending.after === undefined ? undefined : left[0]
  return {
    seen: seen as Dossier,
    mending,
    target,
    columns,
    guarded: {
      removedJobs: rows.some(({ handle, lane }) => removed.has(handle) && lane !== LANES.ended),
      removedFacts: left.length > 0 && handlesOf(mending, 'ledger').length > 0,
      target: target?.outcome === 'succeeded' && !isNote(target, columns),
    },
  }
}

function mendedColumns(shared: Shared, { lifecycle, job, lane, leaseUntil }: Mended) {
  const machine = shared.machines.numberOf(lifecycle)
  if (machine === undefined) throw new LifecycleUnknown(lifecycle.name, lifecycle.version)
  return columnsOf({ job, machine, lane: LANES[lane], leaseUntil })
}

function handlesOf({ aside }: Mending, origin: Origin): Handle[] {
  return aside.filter((one) => one.origin === origin).map(({ handle }) => handle)
}

/** Whether a succeeded job only gets the number of a further fact, which its guard allows. */
function isNote(row: RawJob, columns: Plan['columns']): boolean {
  const same = Object.entries(columns).every(
    ([name, value]) =>
      name === 'seq' || name === 'updated_at' || row[name as keyof RawJob] === value,
  )
  return same && columns.seq === row.seq + 1
}

function guardedTables({ guarded }: Plan): (keyof typeof LOCK_TABLES)[] {
  return [
    ...(guarded.removedJobs || guarded.target ? (['jobs'] as const) : []),
    ...(guarded.removedFacts ? (['ledger'] as const) : []),
  ]
}

/** Jobs first: facts are free to go once their job is gone. */
async function perform(operation: Operation, plan: Plan): Promise<void> {
  const { guarded, mending } = plan
  const aside = (origin: Origin) => takeAside(operation, mending, origin)
  await withoutGuard(operation, guarded.removedJobs && REMOVED_JOBS, () => aside('jobs'))
  await aside('outbox')
  await park(operation, mending)
  await withoutGuard(operation, guarded.removedFacts && REMOVED_FACTS, () => aside('ledger'))
  const { after } = mending
  if (after === undefined) return
  await withoutGuard(operation, guarded.target && FINAL, () => write(operation, plan, after))
}

/** A trigger by its table and its name. */
type Guard = readonly [table: string, name: string]

const FINAL: Guard = ['jobs', 'succeeded_is_final']
const REMOVED_JOBS: Guard = ['jobs', 'live_jobs_are_not_deleted']
const REMOVED_FACTS: Guard = ['ledger', 'ledger_is_never_deleted']

/** One that is disabled refuses nothing, and stays as it is until it is restored. */
const SELECT_GUARD = statement(
  () => `
  SELECT tgenabled AS mode FROM pg_catalog.pg_trigger
  WHERE tgrelid = $1::text::regclass AND tgname = $2 AND tgenabled IN ('O', 'A')`,
)

async function withoutGuard(
  { session, schema }: Operation,
  guard: Guard | false,
  work: () => Promise<void>,
): Promise<void> {
  if (guard === false) return work()
  const [table, name] = guard
  const found = await session.query<{ mode: string }>(SELECT_GUARD, [`${schema}.${table}`, name])
  const [own] = found
  if (own === undefined) return work()
  await session.run(`ALTER TABLE ${schema}.${table} DISABLE TRIGGER ${name}`)
  await work()
  const enable = own.mode === 'A' ? 'ENABLE ALWAYS' : 'ENABLE'
  await session.run(`ALTER TABLE ${schema}.${table} ${enable} TRIGGER ${name}`)
}

const moveAside = (table: Origin, job: string, key: string, type: string) =>
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

/** Moves rows of one table to those that nobody trusts. */
async function takeAside(
  { session, ref, now, by: { operator, note } }: Operation,
  mending: Mending,
  origin: Origin,
): Promise<void> {
  const handles = handlesOf(mending, origin)
  if (handles.length === 0) return
  const values = [ref, arrayOf(handles), now, mending.why, operator, note]
  const [moved] = await session.query<{ tx: number }>(MOVE_ASIDE[origin], values)
  if (moved !== undefined) session.wrote = { tx: moved.tx }
}

const PARK = statement(
  (s) => `
  UPDATE ${s}.outbox
  SET state = 'parked', tries = greatest(tries, 0), run_at = $1, claim = NULL, error = $2
  WHERE eid = ANY ($3::bigint[])`,
)

async function park(
  { session, now }: Operation,
  { parked = [], due = [], why }: Mending,
): Promise<void> {
  if (parked.length > 0) await session.query(PARK, [now, why, arrayOf(parked)])
  if (due.length > 0) await setDue(session, now, due.map(Number))
}

const KEEP = statement(
  (s) => `
  INSERT INTO ${s}.quarantined (at, origin, content, why, operator, note)
  VALUES ($1, $2, $3, $4, $5, $6)`,
)

/** Keeps what an operator took note of. */
export async function keepNote(
  session: OwnSession,
  now: number,
  origin: string,
  content: string,
  why: string,
  { operator, note }: Surgeon,
): Promise<void> {
  await session.query(KEEP, [now, origin, content, why, operator, note])
}

const SELECT_NOTES = statement(
  (s) => `
  SELECT content FROM ${s}.quarantined WHERE origin = $1 ORDER BY number DESC LIMIT 1000`,
)

/** What was noted of one kind. */
export async function notes(session: Session, origin: string): Promise<string[]> {
  const rows = await session.query<{ content: string }>(SELECT_NOTES, [origin])
  return rows.map(({ content }) => content)
}

/** Writes the row, and the fact where the row then stands in the order of the ledger. */
async function write(
  { session, ref }: Operation,
  { target, columns }: Plan,
  { fact }: Mended,
): Promise<void> {
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
  const { tx, place } = moved
  session.wrote = { tx, fact: { job: fact.jobId, seq: fact.seq, place } }
}

const updateRow = (names: readonly string[]) => {
  const sets = names.map((name, i) => `${name} = $${i + 1}`)
  const id = names.length + 1
  return statement(
    (s) => `
    WITH moved AS (
      UPDATE ${s}.jobs SET ${sets.join(', ')}, place = greatest(jobs.place, ${placeOf(s)})
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
      VALUES (${marks.join(', ')}, greatest(${placeOf(s)},
        (SELECT max(tx) FROM ${s}.ledger WHERE job = $${id})))
      RETURNING id, place
    ), recorded AS (${recordMoved(s, id + 1)}
    )
    SELECT ${TX} AS tx, place FROM moved`,
  )
}

/** Two who count at the same moment would both add what they find missing. */
const LOCK_COUNTS = statement(() => `SELECT pg_advisory_xact_lock(hashtext($1), 2)`)
const RECOUNT = statement(
  (s) => `
  INSERT INTO ${s}.ended_counts (queue, state, jobs)
  SELECT queue, state, actual - counted FROM (${COUNTER_DRIFT(s)}) AS difference`,
)

/**
 * Adds to the roll-up of ended jobs what it differs by from the rows. Both are seen as of one
 * moment, and whoever ends jobs writes both at once, so that others may go on meanwhile.
 */
export async function recount(session: Session, schema: string): Promise<void> {
  await session.query(LOCK_COUNTS, [`pawl recount ${schema}`])
  await session.query(RECOUNT)
}

const TAKE_DUTY = statement(
  (s) => `
  INSERT INTO ${s}.duties (name, holder, lease_until) VALUES ($1, $2, $3)
  ON CONFLICT (name) DO UPDATE SET holder = $2, lease_until = $3
  WHERE duties.holder = $2 OR duties.lease_until NOT BETWEEN $4::bigint + 1 AND $4 + ${DUTY_MAX_MS}
  RETURNING place`,
)

/** Takes on what one process does at a time. */
export async function takeDuty(
  session: Session,
  now: number,
  name: string,
  holder: string,
  leaseMs: number,
): Promise<Duty | undefined> {
  const values = [name, holder, now + leaseMs, now]
  const [taken] = await session.query<{ place: string | null }>(TAKE_DUTY, values)
  if (taken === undefined) return undefined
  return taken.place === null ? {} : { place: taken.place }
}

const LEAVE_DUTY = statement(
  (s) => `
  UPDATE ${s}.duties SET place = $1, lease_until = 0 WHERE name = $2 AND holder = $3 RETURNING 1`,
)

/** Notes how far a duty is, and frees it. */
export async function leaveDuty(
  session: Session,
  name: string,
  holder: string,
  place: string | undefined,
): Promise<boolean> {
  return (await session.query(LEAVE_DUTY, [place ?? null, name, holder])).length > 0
}
