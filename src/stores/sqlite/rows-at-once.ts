/**
 * Writes several rows by one statement. A call into SQLite, and each bound value, take a good part
 * of the time of the row that they write. So rows of one verb are gathered and written in blocks,
 * and what the rows of a block have in common is bound once.
 */
import type { Value } from '../rows.ts'
import type { Connection } from './connect.ts'

/** How many rows a block may have; each size is one prepared statement. */
const SIZES = [100, 10, 1] as const

/** Cuts runs of alike rows into blocks, in order. */
export function blocksOf<T>(rows: readonly T[], alike: (a: T, b: T) => boolean): T[][] {
  const blocks: T[][] = []
  for (let start = 0; start < rows.length; ) {
    const first = rows[start] as T
    let end = start + 1
    while (end < rows.length && alike(first, rows[end] as T)) end++
    for (const size of SIZES) {
      for (; end - start >= size; start += size) blocks.push(rows.slice(start, start + size))
    }
  }
  return blocks
}

/** An INSERT of rows that share the values of some columns. */
export type Insert = ReadonlyMap<number, string>

/** Makes the INSERT for each size of a block, given the names of its columns. */
export function insertInto(table: string, shared: string, own: string): Insert {
  // Only what is shared has numbers: drivers ask for the name of each parameter before they bind
  // it, and SQLite looks for that among all that have one.
  const numbered = shared.split(',').map((_, i) => `?${i + 1}`)
  const values = [...numbered, ...own.split(',').map(() => '?')].join(', ')
  const textOf = (size: number) =>
    `INSERT INTO ${table} (${shared}, ${own}) VALUES ${Array(size).fill(`(${values})`).join(', ')}`
  return new Map(SIZES.map((size) => [size, textOf(size)]))
}

/** Writes one block: the shared values, then those of each row. Returns its last row. */
export function insertBlock(
  connection: Connection,
  insert: Insert,
  size: number,
  values: readonly Value[],
): number {
  return Number(connection.sql(insert.get(size) as string).run(...values).lastInsertRowid)
}
