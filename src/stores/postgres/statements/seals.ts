/** Seals on PostgreSQL. */
import type { FactRow } from '../../rows.ts'
import type * as seals from '../../seals.ts'
import { MEASURE_PAGE, SEAL_FACTS_MAX } from '../../seals.ts'
import type { LedgerFact } from '../../verbs/seal-tables.ts'
import { TX } from '../apply.ts'
import { statement } from '../connect.ts'
import { firstOpen, NO_JOB } from '../query.ts'
import { arrayOf } from '../rows-at-once.ts'
import type { At } from './at.ts'

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
const SELECT_PRUNED_REMOVALS = statement(
  (s) => `SELECT * FROM ${s}.seal_removals WHERE pruned BETWEEN $1 AND $2 ORDER BY number`,
)

/** A seal contains whole transactions, because all facts of one share a position. */
const COUNT_BY_TX = statement(
  (s) => `
  SELECT tx, count(*) AS facts FROM ${s}.ledger WHERE tx >= $1 AND tx < $2
  GROUP BY tx ORDER BY tx`,
)

/** One transaction can have more facts than a page, so the cursor is the key of the index. */
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

const SELECT_ASIDE = statement(
  (s) => `
  SELECT number, job, content FROM ${s}.quarantined
  WHERE origin = 'ledger' AND number > $1 ORDER BY number LIMIT ${MEASURE_PAGE}`,
)

/** Contains the schema, so that stores in one database do not wait for each other. */
const key = (s: string) => `hashtext('pawl seals ${s.replaceAll("'", "''")}'), 2`
const LOCK = statement((s) => `SELECT pg_advisory_xact_lock(${key(s)})`)
const LOCK_SHARED = statement((s) => `SELECT pg_advisory_xact_lock_shared(${key(s)})`)

/** How many transactions the first window of `nextSealEnd` has. */
const WINDOW = 256
const GROWTH = 4

export const SEALS = {
  async lastSeal({ session }: At) {
    const [row] = await session.query<seals.SealRow>(SELECT_LAST)
    return row
  },
  nextSealEnd,
  async ledgerPage({ session }: At, first: number, last: number, after: LedgerFact | undefined) {
    type Row = FactRow & { tx: number; job: string; payload: string | null }
    const cursor = after ? [after.position, after.jobId, after.row.seq] : [first, NO_JOB, 0]
    const rows = await session.query<Row>(SELECT_PAGE, [...cursor, last])
    return rows.map((row) => ({ jobId: row.job, position: row.tx, row }))
  },
  async lockSeals({ session }: At) {
    await session.query(LOCK)
  },
  async holdSeals({ session }: At) {
    await session.query(LOCK_SHARED)
  },
  async countFacts({ session }: At, first: number, last: number) {
    const [row] = await session.query<{ facts: number }>(COUNT_RANGE, [first, last])
    return row?.facts ?? 0
  },
  async insertSeal({ session }: At, seal: seals.Seal) {
    const { number, at, first, last, facts, firstAt, lastAt, sum, chain } = seal
    const values = [number, at, first, last, facts, firstAt, lastAt, sum, chain]
    const [row] = await session.query<{ tx: number }>(INSERT_SEAL, values)
    if (row !== undefined) session.wrote = { tx: row.tx }
  },
  sealRanges: ({ session }: At, first: number, last: number) =>
    session.query<seals.SealRange>(SELECT_RANGES, [first, last]),
  async insertRemovals(
    { session }: At,
    pruned: number,
    leftOut: string | null,
    taken: ReadonlyMap<number, seals.LedgerSum>,
  ) {
    const numbers = arrayOf([...taken.keys()])
    const facts = arrayOf([...taken.values()].map((one) => one.facts))
    const sums = arrayOf([...taken.values()].map(({ sum }) => sum))
    await session.query(INSERT_REMOVALS, [pruned, leftOut, numbers, facts, sums])
  },
  sealRows: ({ session }: At, after: number, limit: number) =>
    session.query<seals.SealRow>(SELECT_SEALS, [after, limit]),
  removalRows: ({ session }: At, seal: number) =>
    session.query<seals.RemovalRow>(SELECT_REMOVALS, [seal]),
  pruningRows: ({ session }: At, after: number, limit: number) =>
    session.query<seals.PruningRow>(SELECT_PRUNINGS, [after, limit]),
  prunedRemovals: ({ session }: At, first: number, last: number) =>
    session.query<seals.RemovalRow>(SELECT_PRUNED_REMOVALS, [first, last]),
  asideRows: ({ session }: At, after: number) =>
    session.query<seals.AsideRow>(SELECT_ASIDE, [after]),
}

/** Ends before the first transaction that is still open, because facts may appear after it. */
async function nextSealEnd({ session }: At, first: number): Promise<number | undefined> {
  const open = await firstOpen(session)
  let last: number | undefined
  let facts = 0
  let width = WINDOW
  for (let tx = first; tx < open; ) {
    const end = Math.min(open, tx + width)
    const found = await session.query<{ tx: number; facts: number }>(COUNT_BY_TX, [tx, end])
    for (const one of found) {
      if (last !== undefined && facts + one.facts > SEAL_FACTS_MAX) return last
      facts += one.facts
      last = one.tx
    }
    tx = end
    // If this window was nearly full, a larger one would count facts that the seal cannot take.
    if (facts < SEAL_FACTS_MAX / GROWTH) width *= GROWTH
  }
  return last
}
