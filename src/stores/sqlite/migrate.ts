/**
 * Migrations run forward only, numbered and checksummed, inside one transaction that holds the
 * write lock: several processes that open a new file at once wait for the first. What was applied
 * is recorded; a record that differs from this release, or is newer, is refused.
 */
import { createHash } from 'node:crypto'
import { SchemaDrift, SchemaTooNew } from '../errors.ts'
import type { Connection } from './connect.ts'
import { sql as ledger } from './migrations/0001-ledger.ts'

/** Every migration, in order; its number is its place, from 1. */
const MIGRATIONS: readonly string[] = [ledger]

/** The SQL of every migration, for those who apply it with tools of their own. */
export function printSql(): string {
  return MIGRATIONS.map((sql, i) => `-- Migration ${i + 1}\n${sql.trim()}\n`).join('\n')
}

/** Brings the schema up to date; must be called inside a write transaction. */
export function migrate(connection: Connection, now: number): void {
  connection.database.exec(
    `CREATE TABLE IF NOT EXISTS pawl_migrations (
       number INTEGER PRIMARY KEY, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL
     ) STRICT`,
  )
  const applied = connection.all<{ number: number; checksum: string }>(
    'SELECT number, checksum FROM pawl_migrations ORDER BY number',
  )
  const last = applied[applied.length - 1]?.number ?? 0
  if (last > MIGRATIONS.length) throw new SchemaTooNew(last, MIGRATIONS.length)
  for (const [i, sql] of MIGRATIONS.entries()) {
    const checksum = createHash('sha256').update(sql).digest('hex')
    const record = applied[i]
    if (record === undefined) {
      connection.database.exec(sql)
      connection.run('INSERT INTO pawl_migrations VALUES (?, ?, ?)', i + 1, checksum, now)
    } else if (record.number !== i + 1 || record.checksum !== checksum) {
      throw new SchemaDrift(i + 1)
    }
  }
}
