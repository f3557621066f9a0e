/** Reads the schema of a file without changing anything. */
import { existsSync } from 'node:fs'
import type { Environment } from '../../environment/system.ts'
import type { SchemaStatus } from '../contract/store.ts'
import { whileBusy } from './busy.ts'
import { Connection, explain } from './connect.ts'
import { loadDriver } from './driver.ts'
import { appliedMigrations, pendingAfter } from './migrate.ts'

const BUSY_TIMEOUT_MS = 5000
const FIND_TABLE = `SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'pawl_migrations'`

/** Which migrations a file has; none if it does not exist. */
export async function schemaStatus(path: string, environment: Environment): Promise<SchemaStatus> {
  if (path === ':memory:' || !existsSync(path)) return statusOf([])
  let connection: Connection | undefined
  try {
    const { DatabaseSync } = loadDriver()
    const opened = new Connection(new DatabaseSync(path, { timeout: 0, readOnly: true }))
    connection = opened
    return await whileBusy(environment, BUSY_TIMEOUT_MS, () =>
      statusOf(opened.get(FIND_TABLE) === undefined ? [] : appliedMigrations(opened)),
    )
  } catch (error) {
    throw explain(path, error)
  } finally {
    connection?.close()
  }
}

function statusOf(applied: SchemaStatus['applied']): SchemaStatus {
  return { applied, pending: pendingAfter(applied) }
}
