/**
 * Several rows by one statement. A call into SQLite costs as much as the row that it writes, so
 * rows of one verb are gathered and written in blocks; what does not fill a block goes one by one.
 */
import type { Value } from '../rows.ts'
import type { Connection } from './connect.ts'

/** How many rows make a block. */
export const ROWS_IN_BLOCK = 50

/** Writes every row of values, in order, by an INSERT that ends before its VALUES. */
export function insertRows(
  connection: Connection,
  insert: InsertTexts,
  rows: readonly Value[][],
): void {
  const [only] = rows
  if (only !== undefined && rows.length === 1) {
    connection.sql(insert.one).run(...only)
    return
  }
  const whole = rows.length - (rows.length % ROWS_IN_BLOCK)
  for (let i = 0; i < whole; i += ROWS_IN_BLOCK) {
    connection.sql(insert.block).run(...rows.slice(i, i + ROWS_IN_BLOCK).flat())
  }
  for (const row of rows.slice(whole)) connection.sql(insert.one).run(...row)
}

/** The texts for one row and for a block of them. */
export interface InsertTexts {
  readonly one: string
  readonly block: string
}

/** Makes both texts of an INSERT that has this many columns. */
export function insertTexts(insert: string, columns: number): InsertTexts {
  const tuple = `(${Array(columns).fill('?').join(', ')})`
  return {
    one: `${insert} VALUES ${tuple}`,
    block: `${insert} VALUES ${Array(ROWS_IN_BLOCK).fill(tuple).join(', ')}`,
  }
}
