/** Stores by name, so that a program moves from a file to a server by changing one text. */
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { Logger } from '../core/ports.ts'
import type { Environment } from '../environment/system.ts'
import type { Trouble } from '../stores/outage.ts'
import type { PayloadOptions } from '../stores/requests.ts'
import type { SoundnessOptions } from '../stores/soundness.ts'
import type { SchemaStatus, Store } from '../stores/store.ts'
import type { TimeChange } from '../stores/store-time.ts'
import { StoreNameInvalid } from './errors.ts'

/** What an opener is given beside the name. */
export interface OpenOptions extends PayloadOptions, SoundnessOptions {
  readonly lifecycles: readonly Lifecycle[]
  readonly environment: Environment
  readonly logger: Logger
  /** How many connections to a server there may be. */
  readonly connections?: number
  /** How long a verb tries to get past conflicts and outages; the store's default if absent. */
  readonly timeoutMs?: number
  /** Called while a server is away, from the opening on. */
  readonly onTrouble?: (trouble: Trouble) => void
  /** Called when this process has changed the time of a SQLite file. */
  readonly onTimeChange?: (change: TimeChange) => void
  /** False: this process uses the time of a SQLite file and leaves its changes to others. */
  readonly changesTime?: boolean
}

/** What a store's name says: a server to connect to, or the path of a file. */
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
  if (place.kind === 'postgres') {
    const { openPostgresStore } = await import('../stores/postgres/open.ts')
    return openPostgresStore({ connectionString: place.url, ...options })
  }
  const { openSqliteStore } = await import('../stores/sqlite/store.ts')
  const { timeoutMs, ...others } = options
  const busy = timeoutMs === undefined ? {} : { busyTimeoutMs: timeoutMs }
  return openSqliteStore({ path: place.path, ...others, ...busy })
}

/** The state of a store's schema, without making or changing anything. */
export async function storeStatus(name: string, environment: Environment): Promise<SchemaStatus> {
  const place = placeOf(name)
  if (place.kind === 'postgres') {
    const { schemaStatus } = await import('../stores/postgres/status.ts')
    return schemaStatus(place.url, environment)
  }
  const { schemaStatus } = await import('../stores/sqlite/status.ts')
  return schemaStatus(place.path, environment)
}

/** The SQL that makes the schema of a store, for those who apply it with tools of their own. */
export async function storeSql(name: string): Promise<string> {
  const { printSql } =
    placeOf(name).kind === 'postgres'
      ? await import('../stores/postgres/migrate.ts')
      : await import('../stores/sqlite/migrate.ts')
  return printSql()
}
