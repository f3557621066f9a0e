/**
 * Migrations run forward only, numbered and checksummed, inside one transaction under an advisory
 * lock: several processes that open a new schema at once wait for the first. What was applied is
 * recorded; a record that differs from this release, or is newer, is refused. A schema that is up
 * to date is only read.
 */

import type { SchemaStatus } from '../contract/store.ts'
import { type AppliedRow, checkApplied, checksumOf } from '../migrations.ts'
import { type OwnSession, type Session, statement } from './connect.ts'
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
const MIGRATIONS: readonly ((schema: string) => string)[] = [
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

/** The texts of which checksums are made, the same for every name of a schema. */
const TEXTS = MIGRATIONS.map((sql) => sql('pawl'))

/** The name of a schema as statements need it. */
export function quoted(schema: string): string {
  return `"${schema.replaceAll('"', '""')}"`
}

/** The SQL of every migration, for those who apply it with tools of their own. */
export function printSql(schema = 'pawl'): string {
  const s = quoted(schema)
  const now = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'
  const record = (i: number, checksum: string) =>
    `INSERT INTO ${s}.migrations VALUES (${i + 1}, '${checksum}', ${now});`
  const made = MIGRATIONS.map(
    (sql, i) =>
      `-- Migration ${i + 1}\n${sql(s).trim()}\n${record(i, checksumOf(TEXTS[i] as string))}\n`,
  )
  return [`CREATE SCHEMA IF NOT EXISTS ${s};\n${recordTable(s)};\n`, ...made].join('\n')
}

const recordTable = (s: string) => `CREATE TABLE IF NOT EXISTS ${s}.migrations (
  number int PRIMARY KEY, checksum text NOT NULL, applied_at bigint NOT NULL
)`

/** Reads the catalogue itself: a name lookup may use a state from before the wait for the lock. */
const FIND_TABLE = statement(
  () => `
  SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = 'migrations'`,
)
const SELECT_APPLIED = statement(
  (s) => `SELECT number, checksum, applied_at FROM ${s}.migrations ORDER BY number`,
)
const RECORD = statement((s) => `INSERT INTO ${s}.migrations VALUES ($1, $2, $3)`)
const LOCK = statement(() => `SELECT pg_advisory_xact_lock(hashtext($1), 1)`)

const MIGRATE_MS = 600_000

/** Brings the schema up to date; must be called inside a transaction. */
export async function migrate(session: OwnSession, name: string, now: number): Promise<void> {
  if ((await missing(session, name)) === 0) return
  const schema = quoted(name)
  await session.query(LOCK, [`pawl migrate ${schema}`])
  const count = await missing(session, name)
  if (count === 0) return
  // A table may be large, and an index of it is made in one statement.
  await session.takeTime(MIGRATE_MS)
  if (count === MIGRATIONS.length) {
    await session.run(`CREATE SCHEMA IF NOT EXISTS ${schema}; ${recordTable(schema)}`)
  }
  for (const [i, sql] of MIGRATIONS.entries()) {
    if (i < MIGRATIONS.length - count) continue
    await session.run(sql(schema))
    await session.query(RECORD, [i + 1, checksumOf(TEXTS[i] as string), now])
  }
}

const NEXT = 'pg_snapshot_xmax(pg_current_snapshot())::text::bigint'

const REBASE = statement(
  (s) => `
  UPDATE ${s}.store SET base = last.tx - ${NEXT} + 1
  FROM (
    SELECT max(tx) AS tx FROM ${s}.ledger WHERE tx >= (SELECT base + ${NEXT} FROM ${s}.store)
  ) AS last
  WHERE last.tx IS NOT NULL`,
)

/**
 * If facts have positions that no transaction of this server has reached yet, they come from
 * another server, by a dump that was loaded. New facts must come after them, or followers of the
 * ledger would miss them. So the numbers of this server are counted from there.
 */
export async function rebase(session: Session): Promise<void> {
  await session.query(REBASE)
}

/** How many migrations are not applied. */
async function missing(session: OwnSession, name: string): Promise<number> {
  return MIGRATIONS.length - (await appliedMigrations(session, name)).length
}

/** The numbers of the migrations that are still to be applied. */
export function pendingAfter(applied: SchemaStatus['applied']): number[] {
  return MIGRATIONS.map((_, i) => i + 1).slice(applied.length)
}

/** Returns what was applied; throws if it is not what this release has. */
export async function appliedMigrations(
  session: Session,
  name: string,
): Promise<SchemaStatus['applied']> {
  const [table] = await session.query(FIND_TABLE, [name])
  if (table === undefined) return []
  return checkApplied(await session.query<AppliedRow>(SELECT_APPLIED), TEXTS)
}
