/** Opens stores by name, so that a program changes its database by changing one string. */
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { Logger } from '../core/ports.ts'
import type { Environment } from '../environment/system.ts'
import type { Trouble } from '../stores/outage.ts'
import type { PayloadOptions } from '../stores/requests.ts'
import type { SoundnessOptions } from '../stores/soundness.ts'
import type { SchemaStatus, Store } from '../stores/store.ts'
import type { TimeChange } from '../stores/store-time.ts'
import { StoreNameInvalid } from './errors.ts'

export interface OpenOptions extends PayloadOptions, SoundnessOptions {
  readonly lifecycles: readonly Lifecycle[]
  readonly environment: Environment
  readonly logger: Logger
  /** The largest number of connections to a server. */
  readonly connections?: number
  /** How long a call retries after conflicts and during outages; the store's default if absent. */
  readonly timeoutMs?: number
  /** Called while the server cannot be reached, also during the opening. */
  readonly onTrouble?: (trouble: Trouble) => void
  /** Called when this process has changed the time of a SQLite file. */
  readonly onTimeChange?: (change: TimeChange) => void
  /** If false, this process reads the time of a SQLite file but never changes it. */
  readonly changesTime?: boolean
}

/** The database that a store's name refers to. */
type Place =
  | { readonly kind: 'postgres'; readonly url: string }
  | { readonly kind: 'sqlite'; readonly path: string }

/** Reads `sqlite:PATH`, `sqlite::memory:` or `postgres://…`; throws `StoreNameInvalid`. */
export function placeOf(name: string): Place {
  if (/^postgres(ql)?:\/\//.test(name)) return { kind: 'postgres', url: name }
  const path = /^sqlite:(.+)$/s.exec(name)?.[1]
  if (path === undefined) throw new StoreNameInvalid(name)
  return { kind: 'sqlite', path }
}

/** Opens a store by its name, creating or migrating it as needed. */
export async function openStore(name: string, options: OpenOptions): Promise<Store> {
  const place = placeOf(name)
  const { connections, timeoutMs, onTrouble, onTimeChange, changesTime, ...common } = options
  if (place.kind === 'postgres') {
    const { openPostgresStore } = await import('../stores/postgres/open.ts')
    return openPostgresStore({
      connectionString: place.url,
      ...common,
      ...(connections !== undefined && { connections }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(onTrouble !== undefined && { onTrouble }),
    })
  }
  const { openSqliteStore } = await import('../stores/sqlite/store.ts')
  return openSqliteStore({
    path: place.path,
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
    return schemaStatus(place.url, environment)
  }
  const { schemaStatus } = await import('../stores/sqlite/status.ts')
  return schemaStatus(place.path, environment)
}

/** Returns the SQL that creates the schema, for people who apply it with their own tools. */
export async function storeSql(name: string): Promise<string> {
  const { printSql } =
    placeOf(name).kind === 'postgres'
      ? await import('../stores/postgres/migrate.ts')
      : await import('../stores/sqlite/migrate.ts')
  return printSql()
}
