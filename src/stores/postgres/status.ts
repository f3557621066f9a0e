/** Reads the schema of a database without changing anything. */
import type { Environment } from '../../environment/system.ts'
import type { SchemaStatus } from '../contract/store.ts'
import { Patience, untilDone } from './busy.ts'
import { connectMsOf, Database } from './connect.ts'
import { openPool } from './driver.ts'
import { hostsOf } from './hosts.ts'
import { appliedMigrations, pendingAfter, quoted } from './migrate.ts'

const TIMEOUT_MS = 5000
/** How long to try if nothing listens at the address. */
const REFUSED_MS = 1000

/** Which migrations a database has; none if it has no schema of Pawl. */
export async function schemaStatus(
  connectionString: string,
  environment: Environment,
  name = 'pawl',
): Promise<SchemaStatus> {
  const hosts = hostsOf(connectionString).urls.length
  // Several hosts mean a failover, which may take longer.
  const patience = new Patience(environment, TIMEOUT_MS, hosts > 1 ? TIMEOUT_MS : REFUSED_MS)
  const opened = await openPool({
    connectionString,
    application_name: 'pawl',
    max: 1,
    connectionTimeoutMillis: connectMsOf(TIMEOUT_MS, hosts),
  })
  const settings = { durability: 'full', borrowed: false, timeoutMs: TIMEOUT_MS } as const
  const options = { schema: quoted(name), ...settings, hosts: opened.hosts }
  const database = new Database(opened.pool, options, environment)
  try {
    const applied = await untilDone(
      patience,
      () => database.transaction((session) => appliedMigrations(session, name), patience),
      { isRead: true },
    )
    return { applied, pending: pendingAfter(applied) }
  } finally {
    await database.close()
  }
}
