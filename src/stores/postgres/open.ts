/** Opens a store on PostgreSQL. */
import { LIFECYCLES } from '../../core/lifecycles/index.ts'
import type { Logger } from '../../core/ports.ts'
import { systemEnvironment } from '../../environment/system.ts'
import { payloadBoundsOf } from '../contract/requests.ts'
import type { Store } from '../contract/store.ts'
import { StoreUnusable } from '../errors.ts'
import { lookAtOpening } from '../soundness.ts'
import { StatementMachines } from '../statement-machines.ts'
import { registerMachines } from '../verbs/machines.ts'
import { Patience, untilDone } from './busy.ts'
import { DatabaseClock } from './clock.ts'
import { connectMsOf, Database, statement } from './connect.ts'
import { atOf, isStorable } from './context.ts'
import { openPool, type PgConfig } from './driver.ts'
import { hostsOf } from './hosts.ts'
import { storeIdOf } from './join.ts'
import { migrate, quoted, rebase } from './migrate.ts'
import { perform } from './operations.ts'
import { checkPostgresOptions, type PostgresOptions } from './options.ts'
import { DEFAULT_COMMIT } from './replication.ts'
import { FORMS, inLockOrder } from './statements/machines.ts'
import { PostgresStore } from './store.ts'

const CONNECTIONS = 10
const TIMEOUT_MS = 10_000
/** PostgreSQL cuts longer names, and two of them could become one. */
const SCHEMA_BYTES_MAX = 63
const SERVER_MIN = 140_000

/** If the answer to the opening is lost, the next try finds what was done. */
const OPENING = { isRead: true }

/** Opens a store, creating or migrating its schema as needed. */
export async function openPostgresStore(options: PostgresOptions): Promise<Store> {
  checkPostgresOptions(options)
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
    const patience = new Patience(environment, timeoutMs, options.refusedMs)
    const opened = await untilDone(
      patience,
      async () => {
        if (clock instanceof DatabaseClock) await clock.ask(patience)
        return database.transaction(async (session) => {
          type Server = { version: number; commits: string }
          const [server] = await session.query<Server>(SELECT_SERVER)
          assertNewEnough(schema, server?.version ?? 0)
          await migrate(session, schema, clock.now())
          await rebase(session)
          const lifecycles = options.lifecycles ?? LIFECYCLES
          const machines = new StatementMachines(lifecycles, FORMS)
          const at = atOf({ environment, machines, schema: database.schema }, session, clock.now())
          await perform(at, (tx) => registerMachines(tx, inLockOrder(lifecycles)))
          return { machines, storeId: await storeIdOf(session), commits: server?.commits }
        }, patience)
      },
      OPENING,
    )
    if (database.pooled) warnOfPooler(options.logger)
    if (opened.commits === 'off' && durability === 'full') warnOfCommits(options.logger)
    const { machines, storeId } = opened
    const shared = { environment, machines, payloadBounds, schema: database.schema }
    const store = new PostgresStore({ shared, database, clock, storeId, timeoutMs })
    return await lookAtOpening(store, options)
  } catch (error) {
    await database.close()
    throw error
  }
}

const SELECT_SERVER = statement(
  () => `
  SELECT current_setting('server_version_num')::int AS version, ${DEFAULT_COMMIT} AS commits`,
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

/** Sessions of this store set it to on; transactions of the user keep the setting of the server. */
function warnOfCommits(logger: Logger | undefined): void {
  logger?.warn(
    { event: 'store.commits_asynchronous' },
    'synchronous_commit is off on the server, database or role: jobs that are enqueued in your ' +
      'own transactions can be lost if the server crashes. Set synchronous_commit = on there',
  )
}

function warnOfPooler(logger: Logger | undefined): void {
  logger?.warn(
    { event: 'store.pooler_found' },
    'A connection pooler is in between: statements are not prepared, and idle workers poll',
  )
}
