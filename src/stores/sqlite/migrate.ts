/**
 * Migrations run forward only, numbered and checksummed, inside one transaction that holds the
 * write lock: several processes that open a new file at once wait for the first. What was applied
 * is recorded; a record that differs from this release, or is newer, is refused.
 */

import type { SchemaStatus } from '../contract/store.ts'
import { type AppliedRow, checkApplied, checksumOf } from '../migrations.ts'
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
import { sql as limits } from './migrations/0011-limits.ts'
import { sql as schedules } from './migrations/0012-schedules.ts'
import { sql as retention } from './migrations/0013-retention.ts'
import { sql as tokens } from './migrations/0014-tokens.ts'
import { sql as deadlines } from './migrations/0015-deadlines.ts'
import { sql as groups } from './migrations/0016-groups.ts'
import { sql as ahead } from './migrations/0017-ahead.ts'
import { sql as enqueue } from './migrations/0018-enqueue.ts'
import { sql as flows } from './migrations/0019-flows.ts'

/** Every migration, in order; the first has number 1. */
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
  limits,
  schedules,
  retention,
  tokens,
  deadlines,
  groups,
  ahead,
  enqueue,
  flows,
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

/** The numbers of the migrations that are still to be applied. */
export function pendingAfter(applied: SchemaStatus['applied']): number[] {
  return MIGRATIONS.map((_, i) => i + 1).slice(applied.length)
}

const SELECT_APPLIED = 'SELECT number, checksum, applied_at FROM pawl_migrations ORDER BY number'

/** Returns what was applied; throws if it is not what this release has. */
export function appliedMigrations(connection: Connection): SchemaStatus['applied'] {
  return checkApplied(connection.all<AppliedRow>(SELECT_APPLIED), MIGRATIONS)
}
