/**
 * Seals prove that no fact was taken out of the ledger, put into it or changed in it afterwards:
 * also not a job together with its whole ledger, of which no row is left to tell. Version 1:
 *
 *   line    a fact with its payload, in canonical JSON, as `lineOf` in `archive.ts` writes it
 *   leaf    1024 numbers of 16 bits, little-endian: the 2048 bytes of SHAKE256 over the line
 *   sum     the leaves of a set of facts, added number by number modulo 2^16; in base64
 *   seal    `number` from 1; `first` to `last`, a range of the ledger's order (`pos` on SQLite,
 *           `tx` on PostgreSQL) that begins after the seal before it; how many facts stand there,
 *           the earliest and the latest of their times, their sum, and when the seal was made
 *   chain   SHA-256, in hex, over the chain of the seal before it (nothing for the first), a line
 *           feed, and the seal without its chain in canonical JSON: the last chain vouches for all
 *
 * A sum does not depend on the order of its facts, and facts can be taken out of it. That is what
 * retention needs: it removes jobs whose facts are spread over many seals, and adds what it removed
 * from each to `removals`, in its own transaction; under seal 0 what no seal covered yet. So at any
 * time: the facts that are there + those removed = the seal.
 *
 * What the doctor takes aside is kept whole, with who did it, and counts as there.
 *
 * The sum is this wide because a narrow one can be forged: among thousands of facts that may be
 * chosen freely, some with a given sum modulo 2^512 can be found in about 2^50 steps. For vectors
 * that is a problem of short vectors in lattices, believed to take 2^200 (the construction is known
 * as LtHash). It costs 12 microseconds for each fact, and 2.7 kB for each seal.
 *
 * No secret is involved. Whoever can write to the database can make new seals for what he has left
 * in it; therefore copies of seals belong elsewhere, and are what a store is verified against.
 */
import { createHash } from 'node:crypto'
import { endianness } from 'node:os'
import { encode } from '../core/canonical-json.ts'
import { lineOf, type PrunedJob } from './archive.ts'
import type { FactRow } from './rows.ts'

/** A seal. */
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

/** What retention once took out of a seal; out of none where it is 0. */
export interface Removal {
  readonly seal: number
  /** The number of retention's own record. */
  readonly pruned: number
  readonly facts: number
  readonly sum: string
  /** Jobs that were archived with the others and then not removed, because they had changed. */
  readonly leftOut: readonly string[]
}

/** What retention says of one of its removals, and what it took from which seal. */
export interface Pruning {
  readonly number: number
  readonly at: number
  readonly jobs: number
  readonly facts: number
  readonly firstId: string
  readonly lastId: string
  /** Over the lines of what was removed. */
  readonly sha256: string
  readonly archived: boolean
  /** None where there were no seals yet. */
  readonly removals: readonly Removal[]
}

/** What stands in a range of the ledger. */
export interface Measured {
  readonly facts: number
  readonly firstAt: number
  readonly lastAt: number
  readonly sum: string
}

/** The tables of seals. */
export interface SealTables {
  /**
   * Makes the next seal, over at most 10,000 facts (or those of one transaction, if it wrote more),
   * of what is complete. Nothing where there are no new facts.
   */
  make(): Promise<Seal | undefined>
  /** Seals after a number, in order. */
  list(after: number, limit: number): Promise<Seal[]>
  /** Everything that was taken out of a seal. */
  removalsOf(seal: number): Promise<Removal[]>
  /** Records of retention after a number, in order. */
  prunings(after: number, limit: number): Promise<Pruning[]>
  /** Adds up what stands in a range of the ledger, both ends included. */
  measure(first: number, last: number): Promise<Measured>
  /** Adds up what the doctor took aside from such a range; it keeps whole rows. */
  aside(first: number, last: number): Promise<Measured>
}

/** How many facts a seal covers. */
export const SEAL_FACTS_MAX = 10_000
/** How many facts are read at once while they are added up. */
export const MEASURE_PAGE = 500
/** How often a seal is begun anew because retention removed something under it. */
export const SEAL_TRIES_MAX = 20

const WIDTH = 1024

/** The sum of the facts that were added. */
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

  /** Adds another sum; one that is no sum adds nothing, and so does not fit. */
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
    // A copy, because a buffer may begin at an odd place.
    new Uint8Array(this.#leaf.buffer).set(toLittleEndian(bytes))
    for (let i = 0; i < WIDTH; i++) {
      this.#sum[i] = (this.#sum[i] as number) + (this.#leaf[i] as number)
    }
  }
}

function toLittleEndian(bytes: Buffer): Buffer {
  return endianness() === 'LE' ? bytes : bytes.swap16()
}

/** A fact by whose line it is added; one that cannot be read counts, and fits no seal. */
export function sealedLine(
  jobId: string | null,
  row: FactRow & { readonly payload: string | null },
): string {
  try {
    if (jobId !== null) return lineOf(jobId, row)
  } catch {
    // Whatever is wrong with it, somebody has changed it.
  }
  return `unreadable ${JSON.stringify(row)}`
}

/** A row that was taken aside, as both stores select it. */
export interface AsideRow {
  readonly number: number
  readonly job: string | null
  readonly content: string
}

/** Adds rows of the ledger that were taken aside, if their place is in a range. */
export function addAside(
  sum: LedgerSum,
  rows: readonly AsideRow[],
  placeOf: (row: Readonly<Record<string, unknown>>) => unknown,
  [first, last]: readonly [number, number],
): void {
  for (const { job, content } of rows) {
    const row = rowIn(content)
    const place = row === undefined ? 0 : Number(placeOf({ ...row }))
    if (row !== undefined && place >= first && place <= last) sum.add(sealedLine(job, row), row.at)
  }
}

/** The row of a fact; nothing where somebody has changed it to what is none. */
function rowIn(content: string): (FactRow & { readonly payload: string | null }) | undefined {
  try {
    const row = JSON.parse(content) as (FactRow & { payload: string | null }) | null
    return row ?? undefined
  } catch {
    return undefined
  }
}

/** What vouches for a seal and all those before it. */
export function chainOf(before: Pick<Seal, 'chain'> | undefined, seal: Omit<Seal, 'chain'>) {
  const { number, at, first, last, facts, firstAt, lastAt, sum } = seal
  const text = encode({ number, at, first, last, facts, firstAt, lastAt, sum })
  return createHash('sha256')
    .update(`${before?.chain ?? ''}\n${text}`)
    .digest('hex')
}

/** The seal of a range that was measured. */
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

/** Where a seal stands. */
export type SealRange = Pick<Seal, 'number' | 'first' | 'last'>

/** What retention takes out of each seal, by its number; `ranges` are in order. */
export function takenFrom(
  removed: readonly PrunedJob[],
  ranges: readonly SealRange[],
): ReadonlyMap<number, LedgerSum> {
  const sums = new Map<number, LedgerSum>()
  for (const { lines, places } of removed) {
    for (const [i, line] of lines.entries()) {
      const number = sealAt(ranges, places[i] as number)
      const sum = sums.get(number) ?? new LedgerSum()
      sums.set(number, sum)
      sum.add(line)
    }
  }
  return sums
}

/** The number of the seal that covers a place; 0 where none does. */
export function sealAt(ranges: readonly SealRange[], place: number): number {
  let [low, high] = [0, ranges.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((ranges[middle] as SealRange).last < place) low = middle + 1
    else high = middle
  }
  const range = ranges[low]
  return range !== undefined && range.first <= place ? range.number : 0
}

/** The lowest and the highest place of what retention removes. */
export function reachOf(removed: readonly PrunedJob[]): readonly [number, number] {
  let [low, high] = [Number.MAX_SAFE_INTEGER, 0]
  for (const { places } of removed) {
    for (const place of places) [low, high] = [Math.min(low, place), Math.max(high, place)]
  }
  return [low, high]
}

/** The ids of jobs that were archived and not removed, as a column keeps them. */
export function leftOutOf(
  sheaves: readonly PrunedJob[],
  removed: readonly PrunedJob[],
): string | null {
  const gone = new Set(removed.map(({ id }) => id))
  const ids = sheaves.map(({ id }) => id).filter((id) => !gone.has(id))
  return ids.length === 0 ? null : JSON.stringify(ids)
}

/** The row of a seal, as both stores select it. */
export interface SealRow extends Omit<Seal, 'firstAt' | 'lastAt'> {
  readonly first_at: number
  readonly last_at: number
}

/** The seal that a row holds. */
export function toSeal({ first_at: firstAt, last_at: lastAt, ...row }: SealRow): Seal {
  const { number, at, first, last, facts, sum, chain } = row
  return { number, at, first, last, facts, firstAt, lastAt, sum, chain }
}

/** The row of a removal. */
export interface RemovalRow extends Omit<Removal, 'leftOut'> {
  readonly left_out: string | null
}

/** The removal that a row holds. */
export function toRemoval({ seal, pruned, facts, sum, left_out }: RemovalRow): Removal {
  return { seal, pruned, facts, sum, leftOut: left_out === null ? [] : JSON.parse(left_out) }
}

/** The row of a record of retention. */
export interface PruningRow {
  readonly number: number
  readonly at: number
  readonly jobs: number
  readonly facts: number
  readonly first_id: string
  readonly last_id: string
  readonly sha256: string
  readonly archived: number
}

/** The record that a row holds, with what belongs to it. */
export function toPruning(row: PruningRow, removals: readonly RemovalRow[]): Pruning {
  const { number, at, jobs, facts, first_id: firstId, last_id: lastId, sha256, archived } = row
  const own = removals.filter(({ pruned }) => pruned === number).map(toRemoval)
  const record = { number, at, jobs, facts, firstId, lastId, sha256, archived: archived === 1 }
  return { ...record, removals: own }
}
