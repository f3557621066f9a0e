/**
 * Accepts jobs: one row and one fact each, all by one statement. A key or an id that is taken makes
 * the statement pass over its job; who has it is then read, and answered as the caller wished.
 *
 * Jobs with keys are written in the order of their keys, so that two callers who write the same
 * keys wait for each other in one direction only.
 */
import { JobExists, PawlError, TransitionRace } from '../../core/errors.ts'
import { FACT_CODES } from '../../core/job/facts.ts'
import { type Accepted, Acceptor, areKin, type Offer } from '../accept.ts'
import { PLAIN_COLUMNS, SPECIAL_COLUMNS } from '../columns.ts'
import { codeOf } from '../outage.ts'
import { factData, factPath } from '../rows.ts'
import type { Enqueued } from '../store.ts'
import { Changes } from '../verbs/changes.ts'
import { answerConflict } from '../verbs/conflict.ts'
import { type LockedRow, toRead } from '../verbs/reading.ts'
import { placeOf, writeChanges } from './apply.ts'
import { type Session, statement } from './connect.ts'
import type { Shared } from './context.ts'
import { IN_JOINED } from './join.ts'
import { refuseSurplus } from './queues.ts'
import {
  arrayOf,
  type Column,
  columnOf,
  namesOf,
  type Shaped,
  shapedArrays,
  unnestShaped,
} from './rows-at-once.ts'

const JOB: readonly Column<Accepted>[] = PLAIN_COLUMNS.map(columnOf)
const SPECIAL: readonly Column<Accepted>[] = SPECIAL_COLUMNS.map(columnOf)

const FACT: readonly Column<Accepted>[] = [
  ['path', 'text', ({ fact }) => factPath(fact)],
  ['actor', 'text', ({ fact }) => fact.actor],
  ['data', 'text', ({ fact }) => factData(fact)],
]

const shapedBy = (shape: readonly Column<Accepted>[]): Shaped<Accepted> => ({
  own: [
    ['id', 'uuid', ({ job }) => job.id],
    ['payload', 'text', ({ offer }) => offer.item.input],
  ],
  shape,
  isAlike: areKin,
})

const PLAIN = shapedBy([...JOB, ...FACT])
const WHOLE = shapedBy([...JOB, ...SPECIAL, ...FACT])

const items = (shaped: Shaped<Accepted>) => `
  item AS MATERIALIZED (${unnestShaped(shaped, 1)})`

/** No items if the user has ended the transaction that was joined. */
const joinedItems = (shaped: Shaped<Accepted>) => `
  item AS MATERIALIZED (
    SELECT * FROM (${unnestShaped(shaped, 1)}) AS asked WHERE ${IN_JOINED}
  )`

/** All or nothing: for jobs without keys, whose ids are new but for mistakes. */
const INSERT_NEW = statement(
  (s) => `
  WITH ${items(PLAIN)}, added AS (
    INSERT INTO ${s}.jobs (id, ${namesOf(JOB)}, place)
    SELECT id, ${namesOf(JOB)}, ${placeOf(s)} FROM item
  )
  INSERT INTO ${s}.ledger (tx, job, seq, kind, at, path, actor, data, payload)
  SELECT ${placeOf(s)}, id, seq, ${FACT_CODES.create}, created_at, path, actor, data, payload
  FROM item`,
)

/** Passes over whatever meets a key or an id that is taken. */
const insert = (shaped: Shaped<Accepted>, columns: readonly Column<Accepted>[], from = items) =>
  statement(
    (s) => `
    WITH ${from(shaped)}, added AS (
      INSERT INTO ${s}.jobs (id, ${namesOf(columns)}, place)
      SELECT id, ${namesOf(columns)}, ${placeOf(s)} FROM item
      ON CONFLICT DO NOTHING RETURNING id
    ), noted AS (
      INSERT INTO ${s}.ledger (tx, job, seq, kind, at, path, actor, data, payload)
      SELECT ${placeOf(s)}, id, seq, ${FACT_CODES.create}, created_at, path, actor, data, payload
      FROM item JOIN added USING (id)
    )
    SELECT string_agg(id::text, ',') AS met
    FROM item LEFT JOIN added USING (id) WHERE added.id IS NULL`,
  )

const INSERT_PLAIN = insert(PLAIN, JOB)
const INSERT_WHOLE = insert(WHOLE, [...JOB, ...SPECIAL])
const INSERT_PLAIN_JOINED = insert(PLAIN, JOB, joinedItems)
const INSERT_WHOLE_JOINED = insert(WHOLE, [...JOB, ...SPECIAL], joinedItems)

/** How often a new job may meet somebody who is gone when asked for. */
const TRIES_MAX = 5

/** What became of jobs that were to be added; the others met a key or an id. */
interface Added {
  readonly added: ReadonlySet<Accepted>
  readonly refused?: ReadonlyMap<Accepted, PawlError>
}

/** How accepted jobs are added, and how those that met somebody are answered. */
interface Adding {
  add(jobs: readonly Accepted[]): Promise<Added>
  answer(met: readonly Accepted[]): Promise<(Enqueued | undefined)[]>
}

/** Accepts offers; one that is refused hinders no other. */
export async function acceptAll(
  shared: Shared,
  now: number,
  offers: readonly Offer[],
  adding: Adding,
): Promise<Enqueued[]> {
  const acceptor = new Acceptor(shared, now)
  const decided = offers.map((offer) => acceptor.accept(offer))
  const results = new Map<Accepted, Enqueued>()
  let pending = decided.filter((one): one is Accepted => !(one instanceof PawlError))
  for (let tries = 0; pending.length > 0; tries++) {
    const { added, refused } = await adding.add(pending)
    for (const one of added) results.set(one, { kind: 'created', job: one.job })
    for (const [one, error] of refused ?? []) results.set(one, { kind: 'rejected', error })
    const met = pending.filter((one) => !results.has(one))
    const answers = met.length === 0 ? [] : await adding.answer(met)
    for (const [i, one] of met.entries()) {
      const answered = answers[i]
      if (answered !== undefined) results.set(one, answered)
    }
    pending = met.filter((one) => !results.has(one))
    if (tries === TRIES_MAX) {
      for (const one of pending) {
        results.set(one, { kind: 'rejected', error: new TransitionRace(one.job.id) })
      }
      break
    }
  }
  return decided.map((one) =>
    one instanceof PawlError ? { kind: 'rejected', error: one } : (results.get(one) as Enqueued),
  )
}

/** Writes jobs without keys, all or none; false where an id was taken. */
export async function addNew(session: Session, jobs: readonly Accepted[]): Promise<boolean> {
  try {
    await session.query(INSERT_NEW, shapedArrays(PLAIN, jobs))
    return true
  } catch (error) {
    if (codeOf(error) === UNIQUE_VIOLATION) return false
    throw error
  }
}

const UNIQUE_VIOLATION = '23505'

/** Writes accepted jobs for which there is room; must be called inside a transaction. */
export async function addWithin(session: Session, jobs: readonly Accepted[]): Promise<Added> {
  const refused = await refuseSurplus(session, jobs)
  const { added } = await addJobs(
    session,
    jobs.filter((one) => !refused.has(one)),
  )
  return { added, refused }
}

/** Writes accepted jobs, and answers which of them were added; the others met a key or an id. */
export async function addJobs(session: Session, jobs: readonly Accepted[]): Promise<Added> {
  const first = new Map<string, Accepted>()
  for (const one of jobs) if (!first.has(one.job.id)) first.set(one.job.id, one)
  const distinct = [...first.values()]
  if (distinct.length === 0) return { added: new Set() }
  const plain = distinct.every((one) => one.isPlain)
  const values = plain ? shapedArrays(PLAIN, distinct) : shapedArrays(WHOLE, distinct.sort(byKey))
  const [plainText, wholeText] = session.isJoined
    ? [INSERT_PLAIN_JOINED, INSERT_WHOLE_JOINED]
    : [INSERT_PLAIN, INSERT_WHOLE]
  const text = plain ? plainText : wholeText
  const [row] = await session.query<{ met: string | null }>(text, values)
  for (const id of row?.met?.split(',') ?? []) first.delete(id)
  return { added: new Set(first.values()) }
}

function byKey({ job: a }: Accepted, { job: b }: Accepted): number {
  const [left, right] = [`${a.key ?? ''}\0${a.type}`, `${b.key ?? ''}\0${b.type}`]
  return left < right ? -1 : left > right ? 1 : 0
}

const LOCK_BY_KEYS = statement(
  (s) => `
  SELECT * FROM ${s}.jobs WHERE id = ANY (ARRAY (
    SELECT (SELECT id FROM ${s}.jobs WHERE jobs.type = asked.type AND jobs.key = asked.key)
    FROM unnest($1::text[], $2::text[]) AS asked (type, key)
  )) ORDER BY id FOR UPDATE`,
)

const SELECT_CREATED = statement(
  (s) => `
  SELECT job AS id, at, data, payload FROM ${s}.ledger
  WHERE job = ANY ($1::uuid[]) AND seq = 1`,
)

/**
 * Locks what an unheard try may have written. With synchronous replication, a server that crashed
 * and came back shows it before a standby has it; the COMMIT of a lock waits for the standby.
 */
const LOCK_CREATED = statement(
  (s) => `SELECT 1 FROM ${s}.jobs WHERE id = ANY ($1::uuid[]) ORDER BY id FOR KEY SHARE`,
)

/**
 * Answers for jobs that met a key or an id; must be called inside a transaction. Where an earlier
 * try may have been done unheard (`redo`), a job that is there exactly as it was to be is ours.
 */
export async function answerTaken(
  shared: Shared,
  session: Session,
  now: number,
  met: readonly Accepted[],
  redo: boolean,
): Promise<(Enqueued | undefined)[]> {
  const keyed = met.filter(({ job }) => job.key !== null)
  const rows = await session.query<LockedRow>(LOCK_BY_KEYS, [
    arrayOf(keyed.map(({ job }) => job.type)),
    arrayOf(keyed.map(({ job }) => job.key)),
  ])
  const holders = new Map(
    rows.map((row) => [keyOf(row), { id: row.id, read: toRead(shared.machines, row, row.id) }]),
  )
  const ids = arrayOf(met.map(({ job }) => job.id))
  if (redo) await session.query(LOCK_CREATED, [ids])
  type Created = { id: string; at: number; data: string; payload: string }
  const created = await session.query<Created>(SELECT_CREATED, [ids])
  const byId = new Map(created.map((row) => [row.id, row]))
  const moment = { environment: shared.environment, now }
  const changes = new Changes(moment)
  const answers = met.map((one): Enqueued | undefined => {
    const { job, fact, offer } = one
    const own = byId.get(job.id)
    const isOurs = own?.at === fact.at && own.data === factData(fact)
    if (redo && isOurs && own.payload === offer.item.input) return { kind: 'created', job }
    const holder = job.key === null ? undefined : holders.get(keyOf(job))
    if (holder !== undefined) return answerConflict(moment, changes, one, holder)
    if (own !== undefined) return { kind: 'rejected', error: new JobExists(job.id) }
    // Whoever was in the way has gone in the meantime.
    return undefined
  })
  await writeChanges(session, changes)
  return answers
}

function keyOf({ type, key }: { readonly type: string; readonly key: string | null }): string {
  return `${type}\0${key}`
}
