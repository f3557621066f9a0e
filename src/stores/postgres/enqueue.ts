/**
 * Accepts jobs: one row and one fact each, all by one statement. The statement skips a job whose
 * key or id is taken; the job that has it is then read, and answered as `onConflict` says.
 *
 * Jobs with keys are written in the order of their keys, so that two callers with the same keys
 * cannot wait for each other in a circle.
 */
import { JobExists, PawlError, TransitionRace } from '../../core/errors.ts'
import { FACT_CODES } from '../../core/job/facts.ts'
import { type Acceptance, type Accepted, Acceptor, areKin, type Offer } from '../accept.ts'
import { PLAIN_COLUMNS, SPECIAL_COLUMNS } from '../columns.ts'
import type { RemovedJob } from '../contract/retention.ts'
import type { Enqueued } from '../contract/store.ts'
import { codeOf } from '../outage.ts'
import { factData, factPath } from '../rows.ts'
import { Changes } from '../verbs/changes.ts'
import { answerConflict, answerRemoved, type KeyHolder } from '../verbs/conflict.ts'
import { type LockedRow, toRead } from '../verbs/reading.ts'
import { positionOf, writeChanges } from './apply.ts'
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
import { removedAt } from './statements/retention.ts'

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

/** All or nothing: for jobs without keys, whose ids are new except by mistake. */
const INSERT_NEW = statement(
  (s) => `
  WITH ${items(PLAIN)}, added AS (
    INSERT INTO ${s}.jobs (id, ${namesOf(JOB)}, place)
    SELECT id, ${namesOf(JOB)}, ${positionOf(s)} FROM item
  )
  INSERT INTO ${s}.ledger (tx, job, seq, kind, at, path, actor, data, payload)
  SELECT ${positionOf(s)}, id, seq, ${FACT_CODES.create}, created_at, path, actor, data, payload
  FROM item`,
)

/** Skips jobs whose key belongs to a removed job; those without a key are not looked up. */
const UNLESS_REMOVED = (s: string) => `
  WHERE key IS NULL OR NOT EXISTS (SELECT 1 FROM ${s}.tombstones AS gone
    WHERE gone.type = item.type AND gone.key = item.key AND gone.keep_until > item.created_at)`

/** Skips jobs whose key or id is taken. */
const insert = (shaped: Shaped<Accepted>, columns: readonly Column<Accepted>[], from = items) =>
  statement(
    (s) => `
    WITH ${from(shaped)}, added AS (
      INSERT INTO ${s}.jobs (id, ${namesOf(columns)}, place)
      SELECT id, ${namesOf(columns)}, ${positionOf(s)} FROM item
      ${shaped === WHOLE ? UNLESS_REMOVED(s) : ''}
      ON CONFLICT DO NOTHING RETURNING id
    ), noted AS (
      INSERT INTO ${s}.ledger (tx, job, seq, kind, at, path, actor, data, payload)
      SELECT ${positionOf(s)}, id, seq, ${FACT_CODES.create}, created_at, path, actor, data, payload
      FROM item JOIN added USING (id)
    )
    SELECT string_agg(id::text, ',') AS met
    FROM item LEFT JOIN added USING (id) WHERE added.id IS NULL`,
  )

const INSERT_PLAIN = insert(PLAIN, JOB)
const INSERT_WHOLE = insert(WHOLE, [...JOB, ...SPECIAL])
const INSERT_PLAIN_JOINED = insert(PLAIN, JOB, joinedItems)
const INSERT_WHOLE_JOINED = insert(WHOLE, [...JOB, ...SPECIAL], joinedItems)

/** How often a new job may find its key taken by a job that is gone when it is read. */
const TRIES_MAX = 5

/** The jobs that were added; for the others a key or an id was taken. */
interface Added {
  readonly added: ReadonlySet<Accepted>
  readonly refused?: ReadonlyMap<Accepted, PawlError>
}

/** How accepted jobs are added, and how those with a taken key or id are answered. */
interface Adding {
  add(jobs: readonly Accepted[]): Promise<Added>
  answer(met: readonly Accepted[]): Promise<(Enqueued | undefined)[]>
  /** Accepts jobs that are subject to admission. */
  admit(jobs: readonly Accepted[]): Promise<Enqueued[]>
}

/** Accepts offers. A job that is refused does not affect the others. */
export async function acceptAll(
  shared: Acceptance,
  now: number,
  offers: readonly Offer[],
  adding: Adding,
): Promise<Enqueued[]> {
  const acceptor = new Acceptor(shared, now)
  const decided = offers.map((offer) => acceptor.accept(offer))
  const results = new Map<Accepted, Enqueued>()
  const accepted = decided.filter((one): one is Accepted => !(one instanceof PawlError))
  let pending = accepted.filter(({ offer }) => offer.item.admission === undefined)
  const subject = accepted.filter(({ offer }) => offer.item.admission !== undefined)
  const admitted = subject.length === 0 ? [] : await adding.admit(subject)
  for (const [i, one] of subject.entries()) results.set(one, admitted[i] as Enqueued)
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

/** Writes jobs without keys, all or none; returns false if an id was taken. */
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

/** Writes accepted jobs; returns which were added. For the others a key or an id was taken. */
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
 * Locks what a try with a lost answer may have written. With synchronous replication, a server that
 * crashed and came back shows it before a standby has it; the COMMIT of a lock waits for the
 * standby.
 */
const LOCK_CREATED = statement(
  (s) => `SELECT 1 FROM ${s}.jobs WHERE id = ANY ($1::uuid[]) ORDER BY id FOR KEY SHARE`,
)

/**
 * Answers for jobs whose key or id is taken; must be called inside a transaction. If an earlier try
 * may have been done (`redo`), a job that exists exactly as it was to be is its own.
 */
export async function answerTaken(
  shared: Pick<Shared, 'environment' | 'machines'>,
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
  const gone = await removedKeys(session, keyed, holders, now)
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
    const removed = job.key === null ? undefined : gone.get(keyOf(job))
    if (removed !== undefined) return answerRemoved(one, removed)
    if (own !== undefined) return { kind: 'rejected', error: new JobExists(job.id) }
    // The job that had the key is gone meanwhile.
    return undefined
  })
  await writeChanges(session, changes)
  return answers
}

/** The removed jobs that have keys which no job has. */
async function removedKeys(
  session: Session,
  keyed: readonly Accepted[],
  holders: ReadonlyMap<string, KeyHolder>,
  now: number,
): Promise<ReadonlyMap<string, RemovedJob>> {
  const keys = keyed.flatMap(({ job: { type, key } }) => (key === null ? [] : [{ type, key }]))
  const free = keys.filter((key) => !holders.has(keyOf(key)))
  const removed = free.length === 0 ? [] : await removedAt(session, free, now)
  return new Map(removed.map((one) => [keyOf(one), one]))
}

function keyOf({ type, key }: { readonly type: string; readonly key: string | null }): string {
  return `${type}\0${key}`
}
