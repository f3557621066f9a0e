/**
 * The databases that `createPawl` opens itself: by a name, or by the options of a store. Options
 * that `createPawl` has for every store are not repeated here: lifecycles, environment, logger,
 * bounds of payloads, `onFindings` and `storeTimeout`.
 */
import { record } from '../core/checks.ts'
import { CommandInvalid } from '../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import type { Store } from '../stores/contract/store.ts'
import type { PgConfig, PgPool } from '../stores/postgres/driver.ts'
import type { PostgresOptions } from '../stores/postgres/options.ts'
import type { SqliteOptions } from '../stores/sqlite/options.ts'
import { StoreNameInvalid } from './errors.ts'

/** How Pawl reaches PostgreSQL: by connections of its own, or through your pool. */
type PostgresAccess =
  | {
      /** `postgres://…`; without it and `config`, the environment variables of `pg` apply. */
      readonly connectionString?: string
      /** Whatever `pg` takes: host, user, password, ssl and so on. */
      readonly config?: PgConfig
      /** The largest number of connections; 10 if absent. */
      readonly connections?: number
      readonly pool?: never
    }
  | {
      /** A pool of `pg` that you made and that you end. */
      readonly pool: PgPool
      readonly connectionString?: never
      readonly config?: never
      readonly connections?: never
    }

/** The options of a PostgreSQL store that `createPawl` opens. */
export type PostgresStoreOptions = PostgresAccess &
  Pick<PostgresOptions, 'schema' | 'durability' | 'clock'>

/** The options of a SQLite store that `createPawl` opens. */
export type SqliteStoreOptions = Pick<
  SqliteOptions,
  'path' | 'durability' | 'driver' | 'changesTime'
>

/** A store that `createPawl` opens, with options. */
export type StoreOptions =
  | { readonly postgres: PostgresStoreOptions; readonly sqlite?: never }
  | { readonly sqlite: SqliteStoreOptions; readonly postgres?: never }

/** The database of a store, and its options. */
export type Place =
  | { readonly kind: 'postgres'; readonly options: PostgresStoreOptions }
  | { readonly kind: 'sqlite'; readonly options: SqliteStoreOptions }

/** Reads `sqlite:PATH`, `sqlite::memory:` or `postgres://…`; throws `StoreNameInvalid`. */
export function placeOf(name: string): Place {
  if (/^postgres(ql)?:\/\//.test(name)) {
    return { kind: 'postgres', options: { connectionString: name } }
  }
  const path = /^sqlite:(.+)$/s.exec(name)?.[1]
  if (path === undefined) throw new StoreNameInvalid(name)
  return { kind: 'sqlite', options: { path } }
}

/** The place that the option `store` means; undefined if it is a store that is open already. */
export function placeOfOption(store: string | StoreOptions | Store): Place | undefined {
  if (typeof store === 'string') return placeOf(store)
  if (!('postgres' in store || 'sqlite' in store)) return undefined
  const given = store as Partial<Record<'postgres' | 'sqlite', object>>
  checkFields(given, { postgres: record, sqlite: record }, { what: 'store', prefix: 'store.' })
  const { postgres, sqlite } = store
  if ((postgres === undefined) === (sqlite === undefined)) {
    throw new CommandInvalid('store', 'must have either postgres or sqlite')
  }
  if (sqlite !== undefined) return { kind: 'sqlite', options: checkSqlite(sqlite) }
  return { kind: 'postgres', options: checkPostgres(postgres as PostgresStoreOptions) }
}

// The stores check the values when they are opened.
const SQLITE: FieldChecks<SqliteStoreOptions> = {
  path: unchecked,
  durability: unchecked,
  driver: unchecked,
  changesTime: unchecked,
}
const POSTGRES: FieldChecks<PostgresStoreOptions> = {
  connectionString: unchecked,
  config: unchecked,
  pool: unchecked,
  connections: unchecked,
  schema: unchecked,
  durability: unchecked,
  clock: unchecked,
}

function checkSqlite(options: SqliteStoreOptions): SqliteStoreOptions {
  checkFields(options, SQLITE, { what: 'store.sqlite', prefix: 'store.sqlite.' })
  return options
}

function checkPostgres(options: PostgresStoreOptions): PostgresStoreOptions {
  checkFields(options, POSTGRES, { what: 'store.postgres', prefix: 'store.postgres.' })
  if (options.pool === undefined) return options
  for (const field of ['connectionString', 'config', 'connections'] as const) {
    if (options[field] === undefined) continue
    const why = 'must not be given together with pool, whose own options count'
    throw new CommandInvalid(`store.postgres.${field}`, why)
  }
  return options
}
