/** Opens stores by name or options, so that a program changes its database in one place. */
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { Logger } from '../core/ports.ts'
import type { Environment } from '../environment/system.ts'
import type { PayloadOptions } from '../stores/contract/requests.ts'
import type { SchemaStatus, Store } from '../stores/contract/store.ts'
import type { Trouble } from '../stores/outage.ts'
import type { SoundnessOptions } from '../stores/soundness.ts'
import type { TimeChange } from '../stores/store-time.ts'
import { type Place, placeOf } from './store-options.ts'

export interface OpenOptions extends PayloadOptions, SoundnessOptions {
  readonly lifecycles: readonly Lifecycle[]
  readonly environment: Environment
  readonly logger: Logger
  /** The largest number of connections to a server. */
  readonly connections?: number
  /** How long a call retries after conflicts and during outages; the store's default if absent. */
  readonly timeoutMs?: number
  /** How long the opening tries if nothing listens at the address; `timeoutMs` if absent. */
  readonly refusedMs?: number
  /** Called while the server cannot be reached, also during the opening. */
  readonly onTrouble?: (trouble: Trouble) => void
  /** Called when this process has changed the time of a SQLite file. */
  readonly onTimeChange?: (change: TimeChange) => void
  /** If false, this process reads the time of a SQLite file but never changes it. */
  readonly changesTime?: boolean
}

/** Opens a store, creating or migrating it as needed. */
export async function openStore(store: string | Place, options: OpenOptions): Promise<Store> {
  const place = typeof store === 'string' ? placeOf(store) : store
  const { connections, timeoutMs, refusedMs, onTrouble, onTimeChange, changesTime, ...common } =
    options
  if (place.kind === 'postgres') {
    const { openPostgresStore } = await import('../stores/postgres/open.ts')
    return openPostgresStore({
      ...place.options,
      ...common,
      ...(connections !== undefined && { connections }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(refusedMs !== undefined && { refusedMs }),
      ...(onTrouble !== undefined && { onTrouble }),
    })
  }
  const { openSqliteStore } = await import('../stores/sqlite/store.ts')
  return openSqliteStore({
    ...place.options,
    ...common,
    ...(timeoutMs !== undefined && { busyTimeoutMs: timeoutMs }),
    ...(onTimeChange !== undefined && { onTimeChange }),
    ...(changesTime !== undefined && { changesTime }),
  })
}

/** Reads the state of a store's schema; changes nothing. */
export async function storeStatus(name: string, environment: Environment): Promise<SchemaStatus> {
  const place = placeOf(name)
  if (place.kind === 'postgres') {
    const { schemaStatus } = await import('../stores/postgres/status.ts')
    return schemaStatus(place.options.connectionString ?? name, environment)
  }
  const { schemaStatus } = await import('../stores/sqlite/status.ts')
  return schemaStatus(place.options.path, environment)
}

/** Returns the SQL that creates the schema, for people who apply it with their own tools. */
export async function storeSql(name: string): Promise<string> {
  const { printSql } =
    placeOf(name).kind === 'postgres'
      ? await import('../stores/postgres/migrate.ts')
      : await import('../stores/sqlite/migrate.ts')
  return printSql()
}
