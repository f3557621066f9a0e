/** Looks at the schema of a database without making or changing anything. */
import type { Environment } from '../../environment/system.ts'
import type { SchemaStatus } from '../store.ts'
import { untilDone } from './busy.ts'
import { Database } from './connect.ts'
import { openPool } from './driver.ts'
import { appliedMigrations, pendingAfter, quoted } from './migrate.ts'

const TIMEOUT_MS = 5000

/** Which migrations a database has; none where it has no schema of ours. */
export async function schemaStatus(
  connectionString: string,
  environment: Environment,
  name = 'pawl',
): Promise<SchemaStatus> {
  const timeout = { connectionTimeoutMillis: TIMEOUT_MS }
  const pool = await openPool({ connectionString, application_name: 'pawl', max: 1, ...timeout })
  const settings = { durability: 'full', borrowed: false, statementTimeoutMs: TIMEOUT_MS } as const
  const database = new Database(pool, { schema: quoted(name), ...settings }, environment)
  try {
    const applied = await untilDone(environment, TIMEOUT_MS, () =>
      database.transaction((session) => appliedMigrations(session, name)),
    )
    return { applied, pending: pendingAfter(applied) }
  } finally {
    await database.close()
  }
}
