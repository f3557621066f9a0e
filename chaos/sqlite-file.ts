/** A handle on a SQLite file that only this program uses. */
import { createRequire } from 'node:module'

/** What is used of a handle, which both drivers have. */
export interface Handle {
  exec(sql: string): void
  prepare(sql: string): { all(...values: (string | number)[]): unknown[] }
  close(): void
}

/** Opens a file with the driver that Pawl itself would use. */
export function openHandle(path: string): Handle {
  const require = createRequire(import.meta.url)
  const hasOwn = process.getBuiltinModule('node:sqlite') !== undefined
  const { DatabaseSync } = require(hasOwn ? 'node:sqlite' : '@photostructure/sqlite')
  return new DatabaseSync(path, { timeout: 10_000 }) as Handle
}

/** The rows of one query. */
export function rowsOf<Row>(path: string, sql: string): Row[] {
  const handle = openHandle(path)
  try {
    return handle.prepare(sql).all() as Row[]
  } finally {
    handle.close()
  }
}
