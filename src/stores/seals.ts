/**
 * Seals prove that no fact was removed from the ledger, added to it or changed in it later. They
 * also detect that a job was removed together with all its facts. Version 1:
 *
 *   line    a fact with its payload, in canonical JSON, as `lineOf` in `archive.ts` writes it
 *   leaf    1024 numbers of 16 bits, little-endian: the 2048 bytes of SHAKE256 over the line
 *   sum     the leaves of a set of facts, added number by number modulo 2^16; in base64
 *   seal    `number` from 1; `first` to `last`, a range of the ledger's order (`pos` on SQLite,
 *           `tx` on PostgreSQL) that begins after the seal before it; the number of facts in it,
 *           their earliest and latest time, their sum, and when the seal was made
 *   chain   SHA-256, in hex, over the chain of the seal before it (nothing for the first), a line
 *           feed, and the seal without its chain in canonical JSON. The last chain covers all seals
 *
 * A sum does not depend on the order of its facts, and facts can be subtracted from it. Retention
 * needs that: it removes jobs whose facts are spread over many seals. In its own transaction it
 * writes a removal for each seal that it took facts from (seal 0: facts not sealed yet). So at any
 * time: facts in the ledger + removed facts = the seal.
 *
 * Rows that the doctor sets aside are kept whole and count as facts in the ledger.
 *
 * A narrower sum could be forged: for sums modulo 2^512, an attacker who can choose among thousands
 * of facts finds a set with a given sum in about 2^50 steps. For vectors of this width the same
 * problem is one of short vectors in lattices, believed to take 2^200 steps (the construction is
 * known as LtHash). It costs 12 microseconds for each fact, and 2.7 kB for each seal.
 *
 * Seals contain no secret. A person who can write to the database can make new seals for the rows
 * that are left. Therefore keep copies of seals elsewhere and verify the store against them.
 */
import { createHash } from 'node:crypto'
import { endianness } from 'node:os'
import { encode } from '../core/canonical-json.ts'
import { lineOf, type PrunedJob } from './archive.ts'
import type { FactRow } from './rows.ts'

/** Number, times and sum of the facts in one range of the ledger, chained to the seal before. */
export interface Seal {
  readonly number: number
  /** When it was made. */
  readonly at: number
  readonly first: number
  readonly last: number
  readonly facts: number
  readonly firstAt: number
  readonly lastAt: number
  readonly sum: string
  readonly chain: string
}

/** The facts that one run of retention took out of a seal. */
export interface Removal {
  /** The number of the seal; 0 for facts that were not sealed yet. */
  readonly seal: number
  /** The number of retention's record. */
  readonly pruned: number
  readonly facts: number
  readonly sum: string
  /** Jobs that were archived with the others and then not removed, because they had changed. */
  readonly leftOut: readonly string[]
}

/** A record of retention, with its removals. */
export interface Pruning {
  readonly number: number
  readonly at: number
  readonly jobs: number
  readonly facts: number
  readonly firstId: string
  readonly lastId: string
  /** The hash of the removed lines. */
  readonly sha256: string
  readonly archived: boolean
  /** How many keys of the removed jobs were kept. */
  readonly keys: number
  /** Who asked for it, and why; absent if a worker or the program removed the jobs. */
  readonly operator?: string
  readonly note?: string
  /** Empty if there were no seals yet. */
  readonly removals: readonly Removal[]
}

/** Number, times and sum of the facts in a range of the ledger. */
export interface Measured {
  readonly facts: number
  readonly firstAt: number
  readonly lastAt: number
  readonly sum: string
}

/** Makes and reads the seals of a store; `store.seals`. */
export interface SealTables {
  /**
   * Makes the next seal, over at most 10,000 facts (or those of one transaction, if it wrote more).
   * Facts of open transactions are left to a later seal. Returns `undefined` if there are no new
   * facts. Throws `SealUnsettled` if retention removed facts of the range in every try.
   */
  make(): Promise<Seal | undefined>
  /** Returns seals after a number, in order. */
  list(after: number, limit: number): Promise<Seal[]>
  /** Returns everything that was taken out of a seal. */
  removalsOf(seal: number): Promise<Removal[]>
  /** Returns records of retention after a number, in order. */
  prunings(after: number, limit: number): Promise<Pruning[]>
  /** Adds up the facts in a range of the ledger, both ends included. */
  measure(first: number, last: number): Promise<Measured>
  /** Adds up the facts of such a range that the doctor set aside. */
  aside(first: number, last: number): Promise<Measured>
}

/** How many facts a seal covers. */
export const SEAL_FACTS_MAX = 10_000
/** How many facts one read of `measure` returns. */
export const MEASURE_PAGE = 500
/** How often `make` starts over because retention removed facts of the range. */
export const SEAL_TRIES_MAX = 20

const WIDTH = 1024

/** A sum of facts, and their number and times. */
export class LedgerSum {
  facts = 0
  firstAt = Number.MAX_SAFE_INTEGER
  lastAt = 0
  readonly #sum = new Uint16Array(WIDTH)
  readonly #leaf = new Uint16Array(WIDTH)

  /** Adds a fact by its line. */
  add(line: string, at = 0): void {
    this.#addNumbers(
      createHash('shake256', { outputLength: 2 * WIDTH })
        .update(line)
        .digest(),
    )
    this.facts++
    this.firstAt = Math.min(this.firstAt, at)
    this.lastAt = Math.max(this.lastAt, at)
  }

  /** Adds another sum. A text of the wrong length adds only its number, so the seal fails. */
  merge({ facts, sum }: Pick<Removal, 'facts' | 'sum'>): void {
    const bytes = Buffer.from(sum, 'base64')
    if (bytes.length === 2 * WIDTH) this.#addNumbers(bytes)
    this.facts += facts
  }

  get measured(): Measured {
    const { facts, firstAt, lastAt, sum } = this
    return { facts, firstAt, lastAt, sum }
  }

  get sum(): string {
    return toLittleEndian(Buffer.from(new Uint8Array(this.#sum.buffer))).toString('base64')
  }

  #addNumbers(bytes: Buffer): void {
    // A copy, because a buffer may begin at an odd offset.
    new Uint8Array(this.#leaf.buffer).set(toLittleEndian(bytes))
    for (let i = 0; i < WIDTH; i++) {
      this.#sum[i] = (this.#sum[i] as number) + (this.#leaf[i] as number)
    }
  }
}

function toLittleEndian(bytes: Buffer): Buffer {
  return endianness() === 'LE' ? bytes : bytes.swap16()
}

/** Returns the line by which a fact is added. An unreadable fact counts but matches no line. */
export function sealedLine(
  jobId: string | null,
  row: FactRow & { readonly payload: string | null },
): string {
  try {
    if (jobId !== null) return lineOf(jobId, row)
  } catch {
    // The row was readable when it was written, so it was changed since.
  }
  return `unreadable ${JSON.stringify(row)}`
}

/** A row that the doctor set aside, as both stores select it. */
export interface AsideRow {
  readonly number: number
  readonly job: string | null
  readonly content: string
}

/** A row of the ledger as the doctor kept it: `pos` on SQLite, `tx` on PostgreSQL. */
type AsideFact = FactRow & { readonly payload: string | null; readonly pos: unknown; tx: unknown }

/** Adds those rows that were set aside whose position is in a range. */
export function addAside(
  sum: LedgerSum,
  rows: readonly AsideRow[],
  positionColumn: 'pos' | 'tx',
  [first, last]: readonly [number, number],
): void {
  for (const { job, content } of rows) {
    const row = rowIn(content)
    if (row === undefined) continue
    const position = Number(row[positionColumn])
    if (position >= first && position <= last) sum.add(sealedLine(job, row), row.at)
  }
}

/** Parses a row that was set aside; returns `undefined` if its text is not JSON or is null. */
function rowIn(content: string): AsideFact | undefined {
  try {
    const row = JSON.parse(content) as AsideFact | null
    return row ?? undefined
  } catch {
    return undefined
  }
}

/** Returns the chain of a seal: a hash that covers it and all seals before it. */
export function chainOf(before: Pick<Seal, 'chain'> | undefined, seal: Omit<Seal, 'chain'>) {
  const { number, at, first, last, facts, firstAt, lastAt, sum } = seal
  const text = encode({ number, at, first, last, facts, firstAt, lastAt, sum })
  return createHash('sha256')
    .update(`${before?.chain ?? ''}\n${text}`)
    .digest('hex')
}

/** Makes the seal of a range that was measured. */
export function sealOf(
  before: Seal | undefined,
  last: number,
  { facts, firstAt, lastAt, sum }: Measured,
  at: number,
): Seal {
  const [number, first] = [(before?.number ?? 0) + 1, (before?.last ?? 0) + 1]
  const seal = { number, at, first, last, facts, firstAt, lastAt, sum }
  return { ...seal, chain: chainOf(before, seal) }
}

export type SealRange = Pick<Seal, 'number' | 'first' | 'last'>

/** Sums the removed facts by the number of their seal. `ranges` must be in order. */
export function takenFrom(
  removed: readonly PrunedJob[],
  ranges: readonly SealRange[],
): ReadonlyMap<number, LedgerSum> {
  const sums = new Map<number, LedgerSum>()
  for (const { lines, positions } of removed) {
    for (const [i, line] of lines.entries()) {
      const number = sealAt(ranges, positions[i] as number)
      const sum = sums.get(number) ?? new LedgerSum()
      sums.set(number, sum)
      sum.add(line)
    }
  }
  return sums
}

/** Returns the number of the seal that covers a position, or 0 if there is none. */
export function sealAt(ranges: readonly SealRange[], position: number): number {
  let [low, high] = [0, ranges.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((ranges[middle] as SealRange).last < position) low = middle + 1
    else high = middle
  }
  const range = ranges[low]
  return range !== undefined && range.first <= position ? range.number : 0
}

/** Returns the lowest and the highest position of the facts that retention removes. */
export function reachOf(removed: readonly PrunedJob[]): readonly [number, number] {
  let [low, high] = [Number.MAX_SAFE_INTEGER, 0]
  for (const { positions } of removed) {
    for (const one of positions) [low, high] = [Math.min(low, one), Math.max(high, one)]
  }
  return [low, high]
}

/** Returns the ids of jobs that were archived and not removed, as the column stores them. */
export function leftOutOf(
  collected: readonly PrunedJob[],
  removed: readonly PrunedJob[],
): string | null {
  const gone = new Set(removed.map(({ id }) => id))
  const ids = collected.map(({ id }) => id).filter((id) => !gone.has(id))
  return ids.length === 0 ? null : JSON.stringify(ids)
}

/** The row of a seal, as both stores select it. */
export interface SealRow extends Omit<Seal, 'firstAt' | 'lastAt'> {
  readonly first_at: number
  readonly last_at: number
}

export function toSeal({ first_at: firstAt, last_at: lastAt, ...row }: SealRow): Seal {
  const { number, at, first, last, facts, sum, chain } = row
  return { number, at, first, last, facts, firstAt, lastAt, sum, chain }
}

export interface RemovalRow extends Omit<Removal, 'leftOut'> {
  readonly left_out: string | null
}

export function toRemoval({ seal, pruned, facts, sum, left_out }: RemovalRow): Removal {
  return { seal, pruned, facts, sum, leftOut: left_out === null ? [] : JSON.parse(left_out) }
}

export interface PruningRow {
  readonly number: number
  readonly at: number
  readonly jobs: number
  readonly facts: number
  readonly first_id: string
  readonly last_id: string
  readonly sha256: string
  readonly archived: number
  readonly keys: number
  readonly operator: string | null
  readonly note: string | null
}

/** Makes a record of retention from its row and the removals of several records. */
export function toPruning(row: PruningRow, removals: readonly RemovalRow[]): Pruning {
  const { number, at, jobs, facts, first_id: firstId, last_id: lastId, sha256, archived } = row
  const own = removals.filter(({ pruned }) => pruned === number).map(toRemoval)
  const record = { number, at, jobs, facts, firstId, lastId, sha256, archived: archived === 1 }
  return {
    ...record,
    keys: row.keys,
    ...(row.operator !== null && { operator: row.operator }),
    ...(row.note !== null && { note: row.note }),
    removals: own,
  }
}
