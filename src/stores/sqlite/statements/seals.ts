/** Seals on SQLite. */
import type { FactRow } from '../../rows.ts'
import type * as seals from '../../seals.ts'
import { MEASURE_PAGE, SEAL_FACTS_MAX } from '../../seals.ts'
import type { LedgerFact } from '../../verbs/seal-tables.ts'
import type { Connection } from '../connect.ts'
import type { At } from './at.ts'

const SELECT_LAST = 'SELECT * FROM pawl_seals ORDER BY number DESC LIMIT 1'
const SELECT_SEALS = 'SELECT * FROM pawl_seals WHERE number > ? ORDER BY number LIMIT ?'
const SELECT_REMOVALS = 'SELECT * FROM pawl_seal_removals WHERE seal = ? ORDER BY number'
const SELECT_PRUNINGS = 'SELECT * FROM pawl_pruned WHERE number > ? ORDER BY number LIMIT ?'
const SELECT_PRUNED_REMOVALS = `
  SELECT * FROM pawl_seal_removals WHERE pruned BETWEEN ? AND ? ORDER BY number`

/** Facts are committed in the order of `pos`, so every fact that can be read is complete. */
const SELECT_END = `
  SELECT max(pos) AS last FROM (
    SELECT pos FROM pawl_ledger WHERE pos >= ? ORDER BY pos LIMIT ${SEAL_FACTS_MAX}
  )`

/** The ledger refers to jobs by row number; a line contains the id. */
const SELECT_PAGE = `
  SELECT l.*, pawl_jobs.id AS job_id
  FROM pawl_ledger AS l LEFT JOIN pawl_jobs ON pawl_jobs.rid = l.job
  WHERE l.pos BETWEEN ? AND ? ORDER BY l.pos LIMIT ${MEASURE_PAGE}`

const COUNT_RANGE = 'SELECT count(*) AS facts FROM pawl_ledger WHERE pos BETWEEN ? AND ?'

const INSERT_SEAL = `
  INSERT INTO pawl_seals (number, at, first, last, facts, first_at, last_at, sum, chain)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`

const SELECT_RANGES = `
  SELECT number, first, last FROM pawl_seals WHERE last >= ? AND first <= ? ORDER BY number`

const INSERT_REMOVAL = `
  INSERT INTO pawl_seal_removals (seal, pruned, facts, sum, left_out) VALUES (?, ?, ?, ?, ?)`

const SELECT_ASIDE = `
  SELECT number, job, content FROM pawl_quarantined
  WHERE origin = 'pawl_ledger' AND number > ? ORDER BY number LIMIT ${MEASURE_PAGE}`

export const SEALS = {
  lastSeal: ({ connection }: At) => connection.get<seals.SealRow>(SELECT_LAST),
  nextSealEnd: ({ connection }: At, first: number) =>
    connection.get<{ last: number | null }>(SELECT_END, first)?.last ?? undefined,
  ledgerPage({ connection }: At, first: number, last: number, after: LedgerFact | undefined) {
    type Row = FactRow & { pos: number; payload: string | null; job_id: string | null }
    const from = after === undefined ? first : after.position + 1
    const rows = connection.all<Row>(SELECT_PAGE, from, last)
    return rows.map(({ job_id: jobId, ...row }) => ({ jobId, position: row.pos, row }))
  },
  // Only one transaction can write to a file, so sealing and retention exclude each other anyway.
  lockSeals() {},
  holdSeals() {},
  countFacts: ({ connection }: At, first: number, last: number) =>
    connection.get<{ facts: number }>(COUNT_RANGE, first, last)?.facts ?? 0,
  insertSeal({ connection }: At, seal: seals.Seal) {
    const { number, at, first, last, facts, firstAt, lastAt, sum, chain } = seal
    connection.run(INSERT_SEAL, number, at, first, last, facts, firstAt, lastAt, sum, chain)
  },
  sealRanges: ({ connection }: At, first: number, last: number) =>
    connection.all<seals.SealRange>(SELECT_RANGES, first, last),
  insertRemovals(
    { connection }: At,
    pruned: number,
    leftOut: string | null,
    taken: ReadonlyMap<number, seals.LedgerSum>,
  ) {
    for (const [seal, { facts, sum }] of taken) {
      connection.run(INSERT_REMOVAL, seal, pruned, facts, sum, leftOut)
    }
  },
  sealRows: ({ connection }: At, after: number, limit: number) =>
    connection.all<seals.SealRow>(SELECT_SEALS, after, limit),
  removalRows: ({ connection }: At, seal: number) =>
    connection.all<seals.RemovalRow>(SELECT_REMOVALS, seal),
  pruningRows: ({ connection }: At, after: number, limit: number) =>
    connection.all<seals.PruningRow>(SELECT_PRUNINGS, after, limit),
  prunedRemovals: ({ connection }: At, first: number, last: number) =>
    connection.all<seals.RemovalRow>(SELECT_PRUNED_REMOVALS, first, last),
  asideRows: ({ connection }: At, after: number) =>
    connection.all<seals.AsideRow>(SELECT_ASIDE, after),
}

const COUNT_ALL = `
  SELECT
    (SELECT count(*) FROM pawl_jobs) AS jobs,
    (SELECT count(*) FROM pawl_ledger) AS facts,
    (SELECT coalesce(sum(jobs), 0) FROM pawl_pruned) AS pruned_jobs,
    (SELECT coalesce(sum(facts), 0) FROM pawl_pruned) AS pruned_facts,
    (SELECT count(*) FROM pawl_quarantined WHERE origin = 'pawl_jobs') AS aside_jobs,
    (SELECT count(*) FROM pawl_quarantined WHERE origin = 'pawl_ledger') AS aside_facts,
    coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'pawl_jobs'), 0) AS given_jobs,
    coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'pawl_ledger'), 0) AS given_facts`

/**
 * Returns how many jobs and facts are missing that neither retention nor the doctor removed. This
 * works without seals: SQLite commits a row for every number that it assigns, so each number has a
 * row, or a record of its removal. A negative number means that there are more rows than numbers.
 */
export function missingRows(connection: Connection): { jobs: number; facts: number } {
  const all = connection.get(COUNT_ALL) as Readonly<Record<string, number>>
  const missing = (what: 'jobs' | 'facts') =>
    ((all[`given_${what}`] ?? 0) as number) -
    ['', 'pruned_', 'aside_'].reduce((sum, kind) => sum + (all[`${kind}${what}`] ?? 0), 0)
  return { jobs: missing('jobs'), facts: missing('facts') }
}
