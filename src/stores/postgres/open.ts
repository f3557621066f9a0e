/** Opening a store on PostgreSQL. */
import { LIFECYCLES } from '../../core/lifecycles/index.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import type { Logger } from '../../core/ports.ts'
import { type Environment, systemEnvironment } from '../../environment/system.ts'
import { StoreUnusable } from '../errors.ts'
import type { Trouble } from '../outage.ts'
import { type PayloadOptions, payloadBoundsOf } from '../requests.ts'
import { lookAtOpening, type SoundnessOptions } from '../soundness.ts'
import type { Store } from '../store.ts'
import { Patience, untilDone } from './busy.ts'
import { DatabaseClock } from './clock.ts'
import { connectMsOf, Database, type Durability, statement } from './connect.ts'
import { isStorable } from './context.ts'
import { openPool, type PgConfig, type PgPool } from './driver.ts'
import { hostsOf } from './hosts.ts'
import { storeIdOf } from './join.ts'
import { registerMachines } from './machines.ts'
import { migrate, quoted, rebase } from './migrate.ts'
import { PostgresStore } from './store.ts'

/** How to open a PostgreSQL store. */
export interface PostgresOptions extends PayloadOptions, SoundnessOptions {
  /**
   * `postgres://…`, with several hosts if there are replicas: `postgres://a,b:5433/db`; or give
   * `config`, or a `pool` of your own.
   */
  readonly connectionString?: string
  /** Whatever `pg` takes: host, user, password, ssl and so on. */
  readonly config?: PgConfig
  /** A pool of `pg` that you made and that you end; the store adds nothing lasting to it. */
  readonly pool?: PgPool
  /** How many connections the store's own pool may have; 10 if absent. */
  readonly connections?: number
  /** The schema of the tables; `pawl` if absent. */
  readonly schema?: string
  /** The lifecycles that this process knows; those that ship if absent. */
  readonly lifecycles?: readonly Lifecycle[]
  /** 'full' unless said otherwise: an acknowledged write survives a crash of the server. */
  readonly durability?: Durability
  /** How long a verb tries to get past conflicts and outages; 10 seconds if absent. */
  readonly timeoutMs?: number
  readonly environment?: Environment
  /** Whose time leases and due times are judged by; the database's unless said otherwise. */
  readonly clock?: 'database' | 'environment'
  /** Told of what an operator should know, such as a pooler in between. */
  readonly logger?: Logger
  /** Called while the database is away, from the opening on; see `Store.onTrouble`. */
  readonly onTrouble?: (trouble: Trouble) => void
}

const CONNECTIONS = 10
const TIMEOUT_MS = 10_000
/** PostgreSQL cuts longer names, and two of them could become one. */
const SCHEMA_BYTES_MAX = 63
const SERVER_MIN = 140_000

/** Whatever of it was done unheard is found by the next process that opens the store. */
const OPENING = { isRead: true }

/** Opens a store, creating or migrating its schema as needed. */
export async function openPostgresStore(options: PostgresOptions): Promise<Store> {
  const environment = options.environment ?? systemEnvironment()
  const schema = schemaOf(options)
  const payloadBounds = payloadBoundsOf(options)
  const borrowed = options.pool !== undefined
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS
  const { pool, hosts } = options.pool
    ? { pool: options.pool, hosts: undefined }
    : await openPool(poolConfig(options, timeoutMs))
  const durability = options.durability ?? 'full'
  const settings = { schema: quoted(schema), durability, borrowed, timeoutMs, hosts }
  const database = new Database(pool, settings, environment)
  if (options.onTrouble !== undefined) database.troubles.subscribe(options.onTrouble)
  const clock =
    options.clock === 'environment'
      ? environment.clock
      : new DatabaseClock(database, environment.clock)
  try {
    const patience = new Patience(environment, timeoutMs)
    const opened = await untilDone(
      patience,
      async () => {
        if (clock instanceof DatabaseClock) await clock.ask(patience)
        return database.transaction(async (session) => {
          const [server] = await session.query<{ version: number }>(SELECT_VERSION)
          assertNewEnough(schema, server?.version ?? 0)
          await migrate(session, schema, clock.now())
          await rebase(session)
          const machines = await registerMachines(session, options.lifecycles ?? LIFECYCLES)
          return { machines, storeId: await storeIdOf(session) }
        }, patience)
      },
      OPENING,
    )
    if (database.pooled) warnOfPooler(options.logger)
    const shared = { environment, machines: opened.machines, payloadBounds }
    const { storeId } = opened
    const store = new PostgresStore({ shared, database, clock, storeId, timeoutMs })
    return await lookAtOpening(store, options)
  } catch (error) {
    await database.close()
    throw error
  }
}

const SELECT_VERSION = statement(
  () => `SELECT current_setting('server_version_num')::int AS version`,
)

function schemaOf({ schema = 'pawl' }: PostgresOptions): string {
  const bytes = Buffer.byteLength(schema)
  if (schema !== '' && bytes <= SCHEMA_BYTES_MAX && isStorable(schema)) {
    return schema
  }
  const why = `a schema has a name of 1 to ${SCHEMA_BYTES_MAX} bytes`
  throw new StoreUnusable(JSON.stringify(schema), why, 'Give it another name.')
}

function poolConfig(
  { connectionString, config, connections }: PostgresOptions,
  timeoutMs: number,
): PgConfig {
  const given = connectionString ?? config?.connectionString
  const hosts = typeof given === 'string' ? hostsOf(given).urls.length : 1
  return {
    application_name: 'pawl',
    connectionTimeoutMillis: connectMsOf(timeoutMs, hosts),
    keepAlive: true,
    max: connections ?? CONNECTIONS,
    ...(connectionString !== undefined && { connectionString }),
    ...config,
  }
}

function assertNewEnough(schema: string, version: number): void {
  if (version >= SERVER_MIN) return
  const why = `the server is PostgreSQL ${Math.floor(version / 10_000)}`
  throw new StoreUnusable(schema, why, 'Use PostgreSQL 14 or newer.')
}

function warnOfPooler(logger: Logger | undefined): void {
  logger?.warn(
    { event: 'store.pooler_found' },
    'A connection pooler is in between: statements are not prepared, and idle workers poll',
  )
}
