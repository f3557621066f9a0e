/**
 * Seals of the ledger, behind the contract of `../seals.ts`. A range is added up while others
 * write: below its end no fact can appear any more, and none is changed. Only retention can take
 * some out meanwhile; so the transaction that adds the seal counts once more, and begins anew if
 * some went.
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
import type { Connection } from './connect.ts'
import type { Work } from './writer.ts'

const SELECT_LAST = 'SELECT * FROM pawl_seals ORDER BY number DESC LIMIT 1'
const SELECT_SEALS = 'SELECT * FROM pawl_seals WHERE number > ? ORDER BY number LIMIT ?'
const SELECT_REMOVALS = 'SELECT * FROM pawl_seal_removals WHERE seal = ? ORDER BY number'
const SELECT_PRUNINGS = 'SELECT * FROM pawl_pruned WHERE number > ? ORDER BY number LIMIT ?'
const SELECT_REMOVALS_OF = `
  SELECT * FROM pawl_seal_removals WHERE pruned BETWEEN ? AND ? ORDER BY number`

const SELECT_NEXT = `
  SELECT max(pos) AS last FROM (
    SELECT pos FROM pawl_ledger WHERE pos >= ? ORDER BY pos LIMIT ${SEAL_FACTS_MAX}
  )`

const SELECT_PAGE = `
  SELECT l.*, pawl_jobs.id AS job_id
  FROM pawl_ledger AS l LEFT JOIN pawl_jobs ON pawl_jobs.rid = l.job
  WHERE l.pos BETWEEN ? AND ? ORDER BY l.pos LIMIT ${MEASURE_PAGE}`

const COUNT_RANGE = 'SELECT count(*) AS facts FROM pawl_ledger WHERE pos BETWEEN ? AND ?'

const INSERT_SEAL = `
  INSERT INTO pawl_seals (number, at, first, last, facts, first_at, last_at, sum, chain)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`

const SELECT_ASIDE = `
  SELECT number, job, content FROM pawl_quarantined
  WHERE origin = 'pawl_ledger' AND number > ? ORDER BY number LIMIT ${MEASURE_PAGE}`

/** How the store reads and writes. */
interface Access {
  read<T>(work: (connection: Connection) => T): Promise<T>
  write<T>(verb: VerbName, work: Work<T>): Promise<T>
}

/** The tables in a SQLite file. */
export class SqliteSeals implements SealTables {
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
      const last = await this.#access.read((db) => db.get<{ last: number }>(SELECT_NEXT, first))
      if (last === undefined || last.last === null) return undefined
      const measured = await this.measure(first, last.last)
      const seal = await this.#access.write('seal', (db, now) =>
        addSeal(db, before, sealOf(before, last.last, measured, now)),
      )
      if (seal !== undefined) return seal
    }
    throw new SealUnsettled(number, SEAL_TRIES_MAX)
  }

  list(after: number, limit: number): Promise<Seal[]> {
    return this.#access.read((db) => db.all<SealRow>(SELECT_SEALS, after, limit).map(toSeal))
  }

  removalsOf(seal: number): Promise<Removal[]> {
    return this.#access.read((db) => db.all<RemovalRow>(SELECT_REMOVALS, seal).map(toRemoval))
  }

  prunings(after: number, limit: number): Promise<Pruning[]> {
    return this.#access.read((db) => {
      const rows = db.all<PruningRow>(SELECT_PRUNINGS, after, limit)
      const last = rows[rows.length - 1]?.number ?? after
      const removals = db.all<RemovalRow>(SELECT_REMOVALS_OF, after + 1, last)
      return rows.map((row) => toPruning(row, removals))
    })
  }

  async measure(first: number, last: number): Promise<Measured> {
    type Row = FactRow & { pos: number; payload: string | null; job_id: string | null }
    const sum = new LedgerSum()
    let place = first
    for (;;) {
      const rows = await this.#access.read((db) => db.all<Row>(SELECT_PAGE, place, last))
      for (const { job_id, ...row } of rows) sum.add(sealedLine(job_id, row), row.at)
      const end = rows[rows.length - 1]
      if (end === undefined || rows.length < MEASURE_PAGE) return sum.measured
      place = end.pos + 1
    }
  }

  async aside(first: number, last: number): Promise<Measured> {
    const sum = new LedgerSum()
    for (let after = 0; ; ) {
      const number = after
      const rows = await this.#access.read((db) => db.all<AsideRow>(SELECT_ASIDE, number))
      addAside(sum, rows, ({ pos }) => pos, [first, last])
      if (rows.length < MEASURE_PAGE) return sum.measured
      after = (rows[rows.length - 1] as AsideRow).number
    }
  }
}

function lastSeal(connection: Connection): Seal | undefined {
  const row = connection.get<SealRow>(SELECT_LAST)
  return row && toSeal(row)
}

/** Adds a seal if everything is as it was when its range was added up. */
function addSeal(db: Connection, before: Seal | undefined, seal: Seal): Seal | undefined {
  if (lastSeal(db)?.number !== before?.number) return undefined
  const counted = db.get<{ facts: number }>(COUNT_RANGE, seal.first, seal.last)
  if (counted?.facts !== seal.facts || seal.facts === 0) return undefined
  const { number, at, first, last, facts, firstAt, lastAt, sum, chain } = seal
  db.run(INSERT_SEAL, number, at, first, last, facts, firstAt, lastAt, sum, chain)
  return seal
}

const SELECT_RANGES = `
  SELECT number, first, last FROM pawl_seals WHERE last >= ? AND first <= ? ORDER BY number`

const INSERT_REMOVAL = `
  INSERT INTO pawl_seal_removals (seal, pruned, facts, sum, left_out) VALUES (?, ?, ?, ?, ?)`

/** Notes what retention takes out of which seal, in its transaction; nothing without seals. */
export function noteRemovals(
  connection: Connection,
  pruned: number,
  collected: readonly PrunedJob[],
  removed: readonly PrunedJob[],
): void {
  if (connection.get(SELECT_LAST) === undefined) return
  const ranges = connection.all<SealRange>(SELECT_RANGES, ...reachOf(removed))
  const leftOut = leftOutOf(collected, removed)
  for (const [seal, { facts, sum }] of takenFrom(removed, ranges)) {
    connection.run(INSERT_REMOVAL, seal, pruned, facts, sum, leftOut)
  }
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
 * How many jobs and facts are gone that neither retention nor the doctor has removed, also without
 * seals: every number that SQLite gives out belongs to a row that was committed, so whatever was
 * ever given out is there, or was noted when it was removed. Less than none: there are more than
 * were given out.
 */
export function missingRows(connection: Connection): { jobs: number; facts: number } {
  const all = connection.get(COUNT_ALL) as Readonly<Record<string, number>>
  const missing = (what: 'jobs' | 'facts') =>
    ((all[`given_${what}`] ?? 0) as number) -
    ['', 'pruned_', 'aside_'].reduce((sum, kind) => sum + (all[`${kind}${what}`] ?? 0), 0)
  return { jobs: missing('jobs'), facts: missing('facts') }
}
