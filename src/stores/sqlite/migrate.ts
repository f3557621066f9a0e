/**
 * Migrations run forward only, numbered and checksummed, inside one transaction that holds the
 * write lock: several processes that open a new file at once wait for the first. What was applied
 * is recorded; a record that differs from this release, or is newer, is refused.
 */
import { createHash } from 'node:crypto'
import { SchemaDrift, SchemaTooNew } from '../errors.ts'
import type { SchemaStatus } from '../store.ts'
import type { Connection } from './connect.ts'
import { sql as ledger } from './migrations/0001-ledger.ts'
import { sql as runs } from './migrations/0002-runs.ts'
import { sql as doctor } from './migrations/0003-doctor.ts'
import { sql as seals } from './migrations/0004-seals.ts'
import { sql as time } from './migrations/0005-time.ts'
import { sql as executions } from './migrations/0006-executions.ts'
import { sql as replace } from './migrations/0007-replace.ts'
import { sql as timing } from './migrations/0008-timing.ts'
import { sql as queueRecords } from './migrations/0009-queue-records.ts'
import { sql as marks } from './migrations/0010-marks.ts'

/** Every migration, in order; its number is its place, from 1. */
const MIGRATIONS: readonly string[] = [
  ledger,
  runs,
  doctor,
  seals,
  time,
  executions,
  replace,
  timing,
  queueRecords,
  marks,
]

const RECORD_TABLE = `CREATE TABLE IF NOT EXISTS pawl_migrations (
  number INTEGER PRIMARY KEY, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL
) STRICT`

/** The SQL of every migration, for those who apply it with tools of their own. */
export function printSql(): string {
  const now = `CAST(unixepoch('subsec') * 1000 AS INTEGER)`
  const record = (i: number, sql: string) =>
    `INSERT INTO pawl_migrations VALUES (${i + 1}, '${checksumOf(sql)}', ${now});`
  const made = MIGRATIONS.map(
    (sql, i) => `-- Migration ${i + 1}\n${sql.trim()}\n${record(i, sql)}\n`,
  )
  return [`${RECORD_TABLE};\n`, ...made].join('\n')
}

/** Brings the schema up to date; must be called inside a write transaction. */
export function migrate(connection: Connection, now: number): void {
  connection.database.exec(RECORD_TABLE)
  const applied = appliedMigrations(connection)
  for (const [i, sql] of MIGRATIONS.entries()) {
    if (i < applied.length) continue
    connection.database.exec(sql)
    connection.run('INSERT INTO pawl_migrations VALUES (?, ?, ?)', i + 1, checksumOf(sql), now)
  }
}

/** The numbers of the migrations that these leave to be applied. */
export function pendingAfter(applied: SchemaStatus['applied']): number[] {
  return MIGRATIONS.map((_, i) => i + 1).slice(applied.length)
}

/** What was applied, which must be what this release has. */
export function appliedMigrations(connection: Connection): SchemaStatus['applied'] {
  const rows = connection.all<{ number: number; checksum: string; applied_at: number }>(
    'SELECT number, checksum, applied_at FROM pawl_migrations ORDER BY number',
  )
  const last = rows[rows.length - 1]?.number ?? 0
  if (last > MIGRATIONS.length) throw new SchemaTooNew(last, MIGRATIONS.length)
  return rows.map(({ number, checksum, applied_at: appliedAt }, i) => {
    const sql = MIGRATIONS[i]
    if (sql === undefined || number !== i + 1 || checksum !== checksumOf(sql)) {
      throw new SchemaDrift(i + 1)
    }
    return { number, appliedAt }
  })
}

function checksumOf(sql: string): string {
  return createHash('sha256').update(sql).digest('hex')
}
