/**
 * Seals of the ledger, behind the contract of `../seals.ts`.
 *
 * A seal is measured while others write. The end of its range is chosen so that no fact can appear
 * in the range later, and facts are never changed. Only retention can remove facts meanwhile, so
 * the transaction that adds the seal counts the facts again. If the number differs, `make` starts
 * over. `lockSeals` and `holdSeals` exclude each other: without them, retention could remove facts
 * from a seal that its transaction does not see yet.
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
import type { Tx, Verb } from './operations.ts'
import type { TableAccess } from './run-tables.ts'

/** A fact of the ledger, with the id of its job if the job exists. */
export interface LedgerFact {
  readonly jobId: string | null
  /** The fact's position in the order of the ledger. */
  readonly position: number
  /** The row as selected: an unreadable row is sealed as this text. */
  readonly row: FactRow & { readonly payload: string | null }
}

/** The operations of these verbs. */
export interface SealOperations {
  lastSeal(): SealRow | undefined
  /** Returns the last position of the next seal, or `undefined` if no complete fact follows. */
  nextSealEnd(first: number): number | undefined
  /** Returns facts from `first` to `last`, after the last one of the page before, in order. */
  ledgerPage(first: number, last: number, after: LedgerFact | undefined): readonly LedgerFact[]
  /** Waits until no retention is open, and keeps retention from starting until the commit. */
  lockSeals(): void
  /** Keeps seals from being added until the commit. Must precede the verb's first change. */
  holdSeals(): void
  countFacts(first: number, last: number): number
  insertSeal(seal: Seal): void
  sealRanges(first: number, last: number): readonly SealRange[]
  insertRemovals(
    pruned: number,
    leftOut: string | null,
    taken: ReadonlyMap<number, LedgerSum>,
  ): void
  sealRows(after: number, limit: number): readonly SealRow[]
  removalRows(seal: number): readonly RemovalRow[]
  pruningRows(after: number, limit: number): readonly PruningRow[]
  /** Returns what the records of retention from one number to another removed. */
  prunedRemovals(first: number, last: number): readonly RemovalRow[]
  /** Returns rows of the ledger that the doctor set aside, after a number. */
  asideRows(after: number): readonly AsideRow[]
}

export class StoredSeals implements SealTables {
  readonly #access: TableAccess
  /** The column of the ledger that holds a fact's position. */
  readonly #positionColumn: 'pos' | 'tx'

  constructor(access: TableAccess, positionColumn: 'pos' | 'tx') {
    this.#access = access
    this.#positionColumn = positionColumn
  }

  async make(): Promise<Seal | undefined> {
    let number = 1
    for (let tries = 0; tries < SEAL_TRIES_MAX; tries++) {
      const before = await this.#access.look(lastSeal)
      number = (before?.number ?? 0) + 1
      const first = (before?.last ?? 0) + 1
      const last = await this.#access.look(function* (tx) {
        return yield* tx.nextSealEnd(first)
      })
      if (last === undefined) return undefined
      const measured = await this.measure(first, last)
      const seal = await this.#access.change('seal', (tx) =>
        addSeal(tx, before, sealOf(before, last, measured, tx.now)),
      )
      if (seal !== undefined) return seal
    }
    throw new SealUnsettled(number, SEAL_TRIES_MAX)
  }

  list(after: number, limit: number): Promise<Seal[]> {
    return this.#access.look(function* (tx) {
      return (yield* tx.sealRows(after, limit)).map(toSeal)
    })
  }

  removalsOf(seal: number): Promise<Removal[]> {
    return this.#access.look(function* (tx) {
      return (yield* tx.removalRows(seal)).map(toRemoval)
    })
  }

  prunings(after: number, limit: number): Promise<Pruning[]> {
    return this.#access.look(function* (tx) {
      const rows = yield* tx.pruningRows(after, limit)
      const last = rows[rows.length - 1]?.number ?? after
      const removals = yield* tx.prunedRemovals(after + 1, last)
      return rows.map((row) => toPruning(row, removals))
    })
  }

  /** Every page is a read of its own, so that a long range does not keep a snapshot open. */
  async measure(first: number, last: number): Promise<Measured> {
    const sum = new LedgerSum()
    let after: LedgerFact | undefined
    for (;;) {
      const page = await this.#access.look((tx) => ledgerPage(tx, first, last, after))
      for (const { jobId, row } of page) sum.add(sealedLine(jobId, row), row.at)
      after = page[page.length - 1]
      if (page.length < MEASURE_PAGE) return sum.measured
    }
  }

  async aside(first: number, last: number): Promise<Measured> {
    const sum = new LedgerSum()
    let after = 0
    for (;;) {
      const rows = await this.#access.look((tx) => asideRows(tx, after))
      addAside(sum, rows, this.#positionColumn, [first, last])
      after = rows[rows.length - 1]?.number ?? after
      if (rows.length < MEASURE_PAGE) return sum.measured
    }
  }
}

function* lastSeal(tx: Tx): Verb<Seal | undefined> {
  const row = yield* tx.lastSeal()
  return row && toSeal(row)
}

function* ledgerPage(tx: Tx, first: number, last: number, after: LedgerFact | undefined) {
  return yield* tx.ledgerPage(first, last, after)
}

function* asideRows(tx: Tx, after: number) {
  return yield* tx.asideRows(after)
}

/** Adds a seal. Returns `undefined` if another seal came first or the number of facts changed. */
function* addSeal(tx: Tx, before: Seal | undefined, seal: Seal): Verb<Seal | undefined> {
  yield* tx.lockSeals()
  if ((yield* tx.lastSeal())?.number !== before?.number) return undefined
  const facts = yield* tx.countFacts(seal.first, seal.last)
  if (facts !== seal.facts || facts === 0) return undefined
  yield* tx.insertSeal(seal)
  return seal
}

/**
 * Records which facts retention takes out of which seal, in retention's own transaction. Does
 * nothing if there are no seals.
 */
export function* noteRemovals(
  tx: Tx,
  pruned: number,
  collected: readonly PrunedJob[],
  removed: readonly PrunedJob[],
): Verb<void> {
  if ((yield* tx.lastSeal()) === undefined) return
  const ranges = yield* tx.sealRanges(...reachOf(removed))
  yield* tx.insertRemovals(pruned, leftOutOf(collected, removed), takenFrom(removed, ranges))
}
