/**
 * Writes what was decided: the folded rows, each under the number of the fact that it was decided
 * on, the facts, and the roll-up of ended jobs, by one statement. A row that has changed since the
 * decision is neither written nor recorded. Inside a transaction that locked it, that cannot happen
 * and is an error.
 */
import { TransitionRace } from '../../core/errors.ts'
import { evolve } from '../../core/job/evolve.ts'
import type { Fact } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import { LANES, laneOf } from '../../core/job/lanes.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import { CHANGING_COLUMNS, FACT_COLUMNS, type FactEntry, type JobFold } from '../columns.ts'
import { noticeOf } from '../notices.ts'
import { codeOf } from '../outage.ts'
import { type Changes, type EndedCount, EndedCounts } from '../verbs/changes.ts'
import type { Patience } from './busy.ts'
import { type Database, type Session, statement, type Trail } from './connect.ts'
import { arrayOf, arraysOf, type Column, columnOf, namesOf, unnest } from './rows-at-once.ts'
import { freeSlots } from './statements/gates.ts'
import { writeLinks } from './statements/links.ts'
import { insertNotices } from './statements/notices.ts'

interface Row extends JobFold {
  readonly before: Job
}

const KEYS: readonly Column<Row>[] = [
  ['id', 'uuid', ({ job }) => job.id],
  ['before', 'int', ({ before }) => before.seq],
]

const CHANGED: readonly Column<Row>[] = CHANGING_COLUMNS.map(columnOf)

const FACT: readonly Column<FactEntry>[] = [
  ['job', 'uuid', ({ fact }) => fact.jobId],
  ...FACT_COLUMNS.map(
    ({ name, type, value }): Column<FactEntry> => [name, type, ({ fact }) => value(fact)],
  ),
  ['payload', 'text', ({ payload }) => payload],
]

const COUNT: readonly Column<EndedCount>[] = [
  ['queue', 'text', ({ queue }) => queue],
  ['state', 'text', ({ state }) => state],
  ['jobs', 'bigint', ({ jobs }) => jobs],
]

/** The number of the present transaction, as a subquery that is evaluated once. */
export const TX = '(SELECT pg_current_xact_id()::text::bigint)'

/**
 * The position of facts of the present transaction in the ledger (see `rebase` in `migrate.ts`):
 * its number, counted from where the numbers of this server began for this store.
 */
export const positionOf = (s: string) =>
  `(SELECT base + pg_current_xact_id()::text::bigint FROM ${s}.store)`

const ITEM = [...KEYS, ...CHANGED]

/**
 * Records facts, from parameters of which the first has the number `first`, each at the position
 * that the query `moved` has written into the row of its job.
 */
export const recordMoved = (s: string, first: number) => `
    INSERT INTO ${s}.ledger (tx, ${namesOf(FACT)})
    SELECT moved.place, ${namesOf(FACT, 'fact.')}
    FROM ${unnest(FACT, first, 'fact')} JOIN moved ON moved.id = fact.job`

/** The parameters of facts, which `recordMoved` takes. */
export function factArrays(facts: readonly FactEntry[]): string[] {
  return arraysOf(FACT, facts)
}

const APPLY = statement(
  (s) => `
  WITH moved AS (
    UPDATE ${s}.jobs SET ${CHANGED.map(([name]) => `${name} = item.${name}`).join(', ')},
      place = greatest(jobs.place, ${positionOf(s)}),
      cancel_asked_at = CASE WHEN item.lane <> ${LANES.ended} THEN jobs.cancel_asked_at END,
      slots = CASE WHEN item.lane = ${LANES.held} THEN jobs.slots END
    FROM ${unnest(ITEM, 1, 'item')}
    WHERE jobs.id = item.id AND jobs.id = ANY ($1::uuid[]) AND jobs.seq = item.before
    RETURNING jobs.id, jobs.place
  ), recorded AS (${recordMoved(s, ITEM.length + 1)}
  ), counted AS (
    INSERT INTO ${s}.ended_counts (${namesOf(COUNT)})
    SELECT ${namesOf(COUNT)} FROM ${unnest(COUNT, ITEM.length + FACT.length + 1, 'change')}
  )
  SELECT id, ${TX} AS tx, place FROM moved`,
)

/** A separate statement, so that changes without a migration do not write the column. */
const RENUMBER = statement(
  (s) => `
  UPDATE ${s}.jobs SET machine = item.machine
  FROM unnest($1::uuid[], $2::int[]) AS item (id, machine)
  WHERE jobs.id = item.id AND jobs.id = ANY ($1::uuid[])`,
)

/** Writes what a call has decided; see `../verbs/changes.ts`. */
export async function writeChanges(session: Session, changes: Changes): Promise<void> {
  if (changes.isEmpty) return
  const rows = changes.rows()
  const migrated = rows.filter(({ isMigrated }) => isMigrated).sort(byId)
  if (migrated.length > 0) {
    const ids = arrayOf(migrated.map(({ job }) => job.id))
    await session.query(RENUMBER, [ids, arrayOf(migrated.map(({ machine }) => machine))])
  }
  const counts = new EndedCounts()
  for (const { before, job } of rows) counts.note(before, job)
  const values = [
    ...arraysOf(ITEM, rows),
    ...factArrays(changes.facts),
    ...arraysOf(COUNT, counts.take()),
  ]
  type Moved = { id: string; tx: number; place: number }
  const moved = await session.query<Moved>(APPLY, values)
  const [{ fact: first }] = changes.facts as unknown as [FactEntry]
  const { jobId: job, seq } = first
  const position = moved.find(({ id }) => id === job)?.place ?? 0
  session.wrote = { tx: moved[0]?.tx ?? 0, fact: { job, seq, position } }
  const done = new Set(moved.map(({ id }) => id))
  const stuck = rows.find((row) => !done.has(row.job.id))
  if (stuck !== undefined) throw new TransitionRace(stuck.job.id)
  await insertNotices(
    session,
    changes.notices.map(({ notice }) => notice),
  )
  await freeSlots(session, changes.now, changes.freed(), changes.closed, changes.left())
  const links = changes.links()
  if (links !== undefined) await writeLinks(session, links)
}

function byId({ job: a }: Row, { job: b }: Row): number {
  return a.id < b.id ? -1 : 1
}

/** Writes the row and the fact of a locked job whose row is not trusted; see `../damage.ts`. */
export async function overwrite(
  session: Session,
  lifecycle: Lifecycle,
  rowSeq: number,
  before: Job,
  fact: Fact,
): Promise<void> {
  const job = evolve(before, fact)
  const lane = LANES[laneOf(lifecycle, job, fact.at)]
  const leaseUntil = job.execution?.leaseUntil ?? null
  const rows = [{ before: { ...before, seq: rowSeq }, job, lane, machine: 0, leaseUntil }]
  const entries = [{ fact, payload: null }]
  const values = [...arraysOf(ITEM, rows), ...factArrays(entries), ...arraysOf(COUNT, [])]
  type Moved = { tx: number; place: number }
  const [moved] = await session.query<Moved>(APPLY, values)
  if (moved === undefined) throw new TransitionRace(job.id)
  const { tx, place: position } = moved
  session.wrote = { tx, fact: { job: fact.jobId, seq: fact.seq, position } }
  const notice = noticeOf(lifecycle, before, fact)
  if (notice !== undefined) await insertNotices(session, [notice])
}

/** Locks the row of one job, or all rows of its id if there are several. */
export const LOCK_JOB = statement((s) => `SELECT 1 FROM ${s}.jobs WHERE id = $1 FOR UPDATE`)
const FIND_FACT = statement(
  (s) => `SELECT 1 FROM ${s}.ledger WHERE job = $1 AND seq = $2 AND tx = $3`,
)
const SELECT_STATUS = statement(() => 'SELECT pg_xact_status($1::text::xid8) AS status')

/** The code of a lock that is not free, after which a verb tries again. */
const BUSY = { code: '55P03' }
/** The code of an invalid argument, such as a transaction number that was never used. */
const SENSELESS = '22023'

/**
 * Whether a transaction has committed whose answer was lost. A server that crashed uses numbers
 * again, so the number alone proves nothing: if the transaction wrote a fact, that fact is looked
 * for. The lock of its job is free only when the transaction has ended. The number decides only if
 * nothing but counts and lanes were written.
 */
export async function hasCommitted(
  database: Database,
  { tx, fact }: Trail,
  patience: Patience,
): Promise<boolean> {
  if (fact !== undefined) {
    return database.transaction(async (session) => {
      // The lock is a write of its own: with synchronous replication its COMMIT waits until the
      // fact, too, has reached a standby.
      await session.query(LOCK_JOB, [fact.job])
      const found = await session.query(FIND_FACT, [fact.job, fact.seq, fact.position])
      return found.length > 0
    }, patience)
  }
  const status = await database.atOnce((session) => statusOf(session, tx), patience)
  if (status === 'in progress') throw Object.assign(new Error(status), BUSY)
  return status === 'committed'
}

async function statusOf(session: Session, tx: number): Promise<string | null> {
  try {
    const [row] = await session.query<{ status: string | null }>(SELECT_STATUS, [tx])
    return row?.status ?? null
  } catch (error) {
    if (codeOf(error) === SENSELESS) return null
    throw error
  }
}

const COMPACT = statement(
  (s) => `
  WITH gone AS (
    DELETE FROM ${s}.ended_counts
    WHERE ctid = ANY (ARRAY (
      SELECT ctid FROM ${s}.ended_counts LIMIT 10000 FOR UPDATE SKIP LOCKED))
    RETURNING queue, state, jobs
  )
  INSERT INTO ${s}.ended_counts (queue, state, jobs)
  SELECT queue, state, sum(jobs) FROM gone GROUP BY queue, state HAVING sum(jobs) <> 0`,
)

/** Merges rows of the roll-up; a store calls it after many writes. */
export async function compactCounts(session: Session): Promise<void> {
  await session.query(COMPACT)
}
