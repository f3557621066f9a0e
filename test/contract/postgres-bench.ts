// What every run of the contract on PostgreSQL shares, wherever its server is and whatever stands
// before it. All tests of a run share one schema, whose rows are removed between them as nobody but
// a superuser can.
import type { Lifecycle } from 'pawl'
import pg from 'pg'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { openPostgresStore } from '../../src/stores/postgres/open.ts'
import type { PostgresOptions } from '../../src/stores/postgres/options.ts'
import { KeptConnections } from './kept-connections.ts'
import { type OpenStore, type OwnTable, storeContract } from './store/index.ts'

/** Where a run of the contract finds its server. */
export interface Place {
  /** The server itself. */
  readonly url: string
  /** The way that the stores take to it. */
  readonly storeUrl: string
  leave(): Promise<void>
}

/** The half of the suite that asks for no other statements than the rest. */
const MANY_VALUES = 'hostile values'

const TABLES = [
  ...['jobs', 'ledger', 'outbox', 'workers', 'pruned', 'queues', 'ended_counts', 'machines'],
  ...['seals', 'seal_removals', 'queue_records', 'limits', 'gates', 'limit_records', 'own_texts'],
  ...['schedules', 'schedule_records', 'tombstones', 'admissions', 'tokens', 'groups', 'links'],
  ...['flows'],
]

/**
 * Declares the contract for a server that is started when the tests begin. The many values are left
 * out, added (`with`), or all that is declared (`only`). If connections are kept, the pools of all
 * stores use the same few, one store after the other. `instead` declares other tests on such
 * stores.
 */
export function postgresContract(
  enter: () => Promise<Place>,
  {
    values = 'without',
    keepsConnections = false,
    instead,
  }: {
    values?: 'without' | 'with' | 'only'
    keepsConnections?: boolean
    instead?: (open: OpenStore) => void
  } = {},
): void {
  const schema = `contract_${process.pid}`
  let place: Place
  let admin: pg.Client
  let pool: pg.Pool
  let kept: KeptConnections | undefined

  beforeAll(async () => {
    place = await enter()
    admin = new pg.Client({ connectionString: place.url })
    pool = new pg.Pool({ connectionString: place.storeUrl, max: 3 })
    if (keepsConnections) kept = new KeptConnections(place.storeUrl)
    await admin.connect()
    await (await openPostgresStore({ pool, schema })).close()
    await admin.query(`CREATE TABLE ${schema}.own_texts (n serial, text text NOT NULL)`)
    await admin.query('SET session_replication_role = replica; SET synchronous_commit = off')
  })

  afterAll(async () => {
    await pool.end()
    await kept?.close()
    await admin.query(`DROP SCHEMA ${schema} CASCADE`)
    await admin.end()
    await place.leave()
  })

  const openWith =
    (way: () => PostgresOptions): OpenStore =>
    async (environment) => {
      await admin.query(TABLES.map((name) => `DELETE FROM ${schema}.${name}`).join(';'))
      const clock = 'environment'
      const options = { ...way(), schema, environment, clock, durability: 'relaxed' } as const
      const store = await openPostgresStore(options)
      const reopen = (lifecycles: readonly Lifecycle[]) =>
        openPostgresStore({ ...options, lifecycles })
      return { store, advance: environment.advance, ownTable: ownTableOf(schema), reopen }
    }

  const declare = (wanted: (theme: string) => boolean, open: OpenStore) =>
    storeContract({
      describe: (theme, body) => wanted(theme) && describe(theme, body),
      it,
      open,
    })

  const ownPool = openWith(() => ({
    connectionString: place.storeUrl,
    connections: 3,
    ...(kept && { config: { Client: kept.Client } }),
  }))
  if (instead !== undefined) {
    instead(ownPool)
    return
  }
  if (values !== 'only') declare((theme) => theme !== MANY_VALUES, ownPool)
  if (values === 'without') return
  // A new connection costs a new server process, so the many values share a pool of the user's.
  const usersPool = openWith(() => ({ pool }))
  declare((theme) => theme === MANY_VALUES, usersPool)
}

function ownTableOf(schema: string): OwnTable {
  return {
    async add(tx, text) {
      await tx.query(`INSERT INTO ${schema}.own_texts (text) VALUES ($1)`, [text])
    },
    async all(tx) {
      const rows = await tx.query(`SELECT text FROM ${schema}.own_texts ORDER BY n`)
      return (rows as { text: string }[]).map(({ text }) => text)
    },
  }
}
