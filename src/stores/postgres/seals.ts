/**
 * Seals of the ledger, behind the contract of `../seals.ts`. A range is added up while others
 * write: it ends before every transaction that is still open, so no fact can appear in it any more,
 * and none is changed. Only retention can take some out meanwhile; so the transaction that adds the
 * seal counts once more, and begins anew if some went. Retention and sealing keep each other out by
 * an advisory lock, which retention shares: else one that had not committed yet could take facts
 * out of a seal that it does not see.
 */

import type { PrunedJob } from '../archive.ts'
import { SealUnsettled } from '../errors.ts'
import type { FactRow } from '../rows.ts'
import {
  type AsideRow,
  addAside,
  LedgerSum,
  leftOutOf,
  MEASURE_PAGE,
  type Measured,
  type Pruning,
  type PruningRow,
  type Removal,
  type RemovalRow,
  reachOf,
  SEAL_FACTS_MAX,
  SEAL_TRIES_MAX,
  type Seal,
  type SealRange,
  type SealRow,
  type SealTables,
  sealedLine,
  sealOf,
  takenFrom,
  toPruning,
  toRemoval,
  toSeal,
} from '../seals.ts'
import type { VerbName } from '../verb-table.ts'
import { TX } from './apply.ts'
import { type Session, statement } from './connect.ts'
import { firstOpen, NO_JOB } from './query.ts'
import { arrayOf } from './rows-at-once.ts'

const SELECT_LAST = statement((s) => `SELECT * FROM ${s}.seals ORDER BY number DESC LIMIT 1`)
const SELECT_SEALS = statement(
  (s) => `SELECT * FROM ${s}.seals WHERE number > $1 ORDER BY number LIMIT $2`,
)
const SELECT_REMOVALS = statement(
  (s) => `SELECT * FROM ${s}.seal_removals WHERE seal = $1 ORDER BY number`,
)
const SELECT_PRUNINGS = statement(
  (s) => `SELECT * FROM ${s}.pruned WHERE number > $1 ORDER BY number LIMIT $2`,
)
const SELECT_REMOVALS_OF = statement(
  (s) => `SELECT * FROM ${s}.seal_removals WHERE pruned BETWEEN $1 AND $2 ORDER BY number`,
)
const COUNT_BY_TX = statement(
  (s) => `
  SELECT tx, count(*) AS facts FROM ${s}.ledger WHERE tx >= $1 AND tx < $2
  GROUP BY tx ORDER BY tx`,
)
const SELECT_PAGE = statement(
  (s) => `
  SELECT * FROM ${s}.ledger
  WHERE tx >= $1 AND tx <= $4 AND (tx, job, seq) > ($1::bigint, $2::uuid, $3::int)
  ORDER BY tx, job, seq LIMIT ${MEASURE_PAGE}`,
)
const COUNT_RANGE = statement(
  (s) => `SELECT count(*) AS facts FROM ${s}.ledger WHERE tx >= $1 AND tx <= $2`,
)
const INSERT_SEAL = statement(
  (s) => `
  INSERT INTO ${s}.seals (number, at, first, last, facts, first_at, last_at, sum, chain)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING ${TX} AS tx`,
)
const SELECT_ASIDE = statement(
  (s) => `
  SELECT number, job, content FROM ${s}.quarantined
  WHERE origin = 'ledger' AND number > $1 ORDER BY number LIMIT ${MEASURE_PAGE}`,
)
/** One text for each schema, so that stores in one database do not wait for each other. */
const key = (s: string) => `hashtext('pawl seals ${s.replaceAll("'", "''")}'), 2`
const LOCK = statement((s) => `SELECT pg_advisory_xact_lock(${key(s)})`)
const LOCK_SHARED = statement((s) => `SELECT pg_advisory_xact_lock_shared(${key(s)})`)

/** How many transactions are looked through at first. */
const WIDTH = 256
const GROWTH = 4

/** How the store reads and writes. */
interface Access {
  read<T>(work: (session: Session) => Promise<T>): Promise<T>
  change<T>(verb: VerbName, work: (session: Session, now: number) => Promise<T>): Promise<T>
}

/** The tables in a schema. */
export class PostgresSeals implements SealTables {
  readonly #access: Access

  constructor(access: Access) {
    this.#access = access
  }

  async make(): Promise<Seal | undefined> {
    let number = 1
    for (let tries = 0; tries < SEAL_TRIES_MAX; tries++) {
      const before = await this.#access.read(lastSeal)
      number = (before?.number ?? 0) + 1
      const first = (before?.last ?? 0) + 1
      const last = await this.#access.read((session) => findEnd(session, first))
      if (last === undefined) return undefined
      const measured = await this.measure(first, last)
      const seal = await this.#access.change('seal', (session, now) =>
        addSeal(session, before, sealOf(before, last, measured, now)),
      )
      if (seal !== undefined) return seal
    }
    throw new SealUnsettled(number, SEAL_TRIES_MAX)
  }

  list(after: number, limit: number): Promise<Seal[]> {
    return this.#access.read(async (session) => {
      const rows = await session.query<SealRow>(SELECT_SEALS, [after, limit])
      return rows.map(toSeal)
    })
  }

  removalsOf(seal: number): Promise<Removal[]> {
    return this.#access.read(async (session) => {
      const rows = await session.query<RemovalRow>(SELECT_REMOVALS, [seal])
      return rows.map(toRemoval)
    })
  }

  prunings(after: number, limit: number): Promise<Pruning[]> {
    return this.#access.read(async (session) => {
      const rows = await session.query<PruningRow>(SELECT_PRUNINGS, [after, limit])
      const last = rows[rows.length - 1]?.number ?? after
      const removals = await session.query<RemovalRow>(SELECT_REMOVALS_OF, [after + 1, last])
      return rows.map((row) => toPruning(row, removals))
    })
  }

  async measure(first: number, last: number): Promise<Measured> {
    type Row = FactRow & { tx: number; job: string; payload: string | null }
    const sum = new LedgerSum()
    let [tx, job, seq] = [first, NO_JOB, 0]
    for (;;) {
      const place = [tx, job, seq, last]
      const rows = await this.#access.read((session) => session.query<Row>(SELECT_PAGE, place))
      for (const row of rows) sum.add(sealedLine(row.job, row), row.at)
      const end = rows[rows.length - 1]
      if (end === undefined || rows.length < MEASURE_PAGE) return sum.measured
      ;[tx, job, seq] = [end.tx, end.job, end.seq]
    }
  }

  async aside(first: number, last: number): Promise<Measured> {
    const sum = new LedgerSum()
    for (let after = 0; ; ) {
      const number = after
      const rows = await this.#access.read((session) =>
        session.query<AsideRow>(SELECT_ASIDE, [number]),
      )
      addAside(sum, rows, ({ tx }) => tx, [first, last])
      if (rows.length < MEASURE_PAGE) return sum.measured
      after = (rows[rows.length - 1] as AsideRow).number
    }
  }
}

async function lastSeal(session: Session): Promise<Seal | undefined> {
  const [row] = await session.query<SealRow>(SELECT_LAST)
  return row && toSeal(row)
}

/** The last transaction of the next seal; nothing where there are no facts to be sealed. */
async function findEnd(session: Session, first: number): Promise<number | undefined> {
  const open = await firstOpen(session)
  let last: number | undefined
  let facts = 0
  let width = WIDTH
  for (let tx = first; tx < open; ) {
    const end = Math.min(open, tx + width)
    const found = await session.query<{ tx: number; facts: number }>(COUNT_BY_TX, [tx, end])
    for (const one of found) {
      if (last !== undefined && facts + one.facts > SEAL_FACTS_MAX) return last
      facts += one.facts
      last = one.tx
    }
    tx = end
    // Where there is much, the next window would be larger than what is wanted of it.
    if (facts < SEAL_FACTS_MAX / GROWTH) width *= GROWTH
  }
  return last
}

/** Adds a seal if everything is as it was when its range was added up. */
async function addSeal(
  session: Session,
  before: Seal | undefined,
  seal: Seal,
): Promise<Seal | undefined> {
  await session.query(LOCK)
  if ((await lastSeal(session))?.number !== before?.number) return undefined
  const range = [seal.first, seal.last]
  const [counted] = await session.query<{ facts: number }>(COUNT_RANGE, range)
  if (counted?.facts !== seal.facts || seal.facts === 0) return undefined
  const { number, at, first, last, facts, firstAt, lastAt, sum, chain } = seal
  const values = [number, at, first, last, facts, firstAt, lastAt, sum, chain]
  const [row] = await session.query<{ tx: number }>(INSERT_SEAL, values)
  if (row !== undefined) session.wrote = { tx: row.tx }
  return seal
}

/** Keeps seals from being made until the transaction ends; must come before its first change. */
export async function holdSeals(session: Session): Promise<void> {
  await session.query(LOCK_SHARED)
}

const SELECT_RANGES = statement(
  (s) => `
  SELECT number, first, last FROM ${s}.seals WHERE last >= $1 AND first <= $2 ORDER BY number`,
)
const INSERT_REMOVALS = statement(
  (s) => `
  INSERT INTO ${s}.seal_removals (seal, pruned, facts, sum, left_out)
  SELECT seal, $1, facts, sum, $2
  FROM unnest($3::bigint[], $4::bigint[], $5::text[]) AS taken (seal, facts, sum)`,
)

/** Notes what retention takes out of which seal, in its transaction; nothing without seals. */
export async function noteRemovals(
  session: Session,
  pruned: number,
  collected: readonly PrunedJob[],
  removed: readonly PrunedJob[],
): Promise<void> {
  if ((await lastSeal(session)) === undefined) return
  const ranges = await session.query<SealRange>(SELECT_RANGES, [...reachOf(removed)])
  const taken = [...takenFrom(removed, ranges)]
  await session.query(INSERT_REMOVALS, [
    pruned,
    leftOutOf(collected, removed),
    arrayOf(taken.map(([seal]) => seal)),
    arrayOf(taken.map(([, { facts }]) => facts)),
    arrayOf(taken.map(([, { sum }]) => sum)),
  ])
}
