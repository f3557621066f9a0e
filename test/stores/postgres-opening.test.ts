// Opening a store: by many at once, by hand, in schemas with hostile names, where it must be
// refused, and where the server is not to be had.
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  openPostgresStore,
  type PostgresOptions,
  printPostgresSchema as printSql,
} from 'pawl/postgres'
import { LIFECYCLES, standard } from 'pawl/rules'
import pg from 'pg'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { Doctor } from '../../src/doctor/doctor.ts'
import { systemEnvironment } from '../../src/environment/system.ts'
import type { Store } from '../../src/stores/contract/store.ts'
import { connected, single } from '../support/postgres/clients.ts'
import { freshDatabase, freshSchema, sharedPostgres } from '../support/postgres/databases.ts'
import { startPostgres } from '../support/postgres/server.ts'

const url = sharedPostgres()
const { ids } = systemEnvironment()
const FEW = { connectionString: url, connections: 2 }

/** Opens a store that is closed when the test has ended. */
async function opened(options: PostgresOptions): Promise<Store> {
  const store = await openPostgresStore(options)
  onTestFinished(() => store.close())
  return store
}

/** One job from its beginning to its end; answers the value of a setting inside its commit. */
async function live(store: Store, setting = 'server_version'): Promise<unknown> {
  const command = { jobId: ids.next(), type: 'a', queue: 'q' }
  await store.enqueue([{ lifecycle: standard, command, input: '1' }])
  const [held] = await store.claim({ worker: 'w', limit: 1, leaseMs: 60_000, start: true })
  if (held === undefined) throw new Error('nothing was claimed')
  let shown: unknown
  const answer = await store.commit(held, async (tx) => {
    const [row] = await tx.query(`SELECT current_setting('${setting}') AS value`)
    shown = (row as { value: unknown }).value
    return '1'
  })
  expect(answer).toMatchObject({ kind: 'done' })
  expect(await store.get(held.job.id)).toMatchObject({ state: 'succeeded' })
  return shown
}

describe('several stores', () => {
  it('open a new schema at the same moment, and make one', async () => {
    const schema = freshSchema(url)
    const opening = Array.from({ length: 6 }, () => opened({ ...FEW, schema }))
    const stores = await Promise.all(opening)
    const client = await connected(url)
    const rowsOf = async (table: string) =>
      (await client.query(`SELECT * FROM ${schema}.${table}`)).rows
    const applied = Array.from({ length: 19 }, (_, i) => ({ number: i + 1 }))
    expect(await rowsOf('migrations')).toMatchObject(applied)
    expect(await rowsOf('store')).toHaveLength(1)
    expect(await rowsOf('machines')).toHaveLength(LIFECYCLES.length)
    for (const store of stores) await live(store)
  })

  it('open a schema that is up to date while others work, and wait for nobody', async () => {
    const schema = freshSchema(url)
    const worker = await opened({ ...FEW, schema })
    let working = true
    const work = (async () => {
      while (working) await live(worker)
    })()
    // Whoever needs no migration must not need its lock either.
    const migrating = await connected(url)
    await migrating.query('BEGIN')
    const lock = 'SELECT pg_advisory_xact_lock(hashtext($1), 1)'
    await migrating.query(lock, [`pawl migrate "${schema}"`])
    for (let n = 0; n < 5; n++) {
      const store = await openPostgresStore({ ...FEW, schema, timeoutMs: 2000 })
      await store.close()
    }
    working = false
    await work
    await migrating.query('ROLLBACK')
  })

  it('that need a migration wait for the one who does it, for a bounded time', async () => {
    const schema = freshSchema(url)
    const migrating = await connected(url)
    await migrating.query('BEGIN')
    const lock = 'SELECT pg_advisory_xact_lock(hashtext($1), 1)'
    await migrating.query(lock, [`pawl migrate "${schema}"`])
    // Connected already: a connection that takes longer than the time-out is another error.
    const pool = new pg.Pool({ connectionString: url, max: 2 })
    onTestFinished(() => pool.end())
    await Promise.all([pool.query('SELECT 1'), pool.query('SELECT 1')])
    const busy = openPostgresStore({ pool, schema, timeoutMs: 500 })
    await expect(busy).rejects.toMatchObject({ code: 'E_STORE_BUSY' })
    const waiting = opened({ ...FEW, schema })
    await migrating.query('ROLLBACK')
    await live(await waiting)
  })
})

describe('a schema that this release must not touch', () => {
  const refusals = [
    {
      what: 'a newer one',
      sql: `INSERT INTO @.migrations VALUES (99, 'of a later release', 0)`,
      code: 'E_SCHEMA_TOO_NEW',
    },
    {
      what: 'an edited migration',
      sql: `UPDATE @.migrations SET checksum = 'other' WHERE number = 1`,
      code: 'E_SCHEMA_DRIFT',
    },
    {
      what: 'a missing record of a migration',
      sql: `UPDATE @.migrations SET number = 99, checksum = 'other' WHERE number = 1`,
      code: 'E_SCHEMA_TOO_NEW',
    },
  ]

  it.each(refusals)('is refused and left as it is: $what', async ({ sql, code }) => {
    const schema = freshSchema(url)
    await (await openPostgresStore({ ...FEW, schema })).close()
    const client = await connected(url)
    await client.query(sql.replaceAll('@', schema))
    const dump = async () => [
      (await client.query(`SELECT * FROM ${schema}.migrations`)).rows,
      (await client.query(`SELECT * FROM ${schema}.machines`)).rows,
    ]
    const before = await dump()
    await expect(openPostgresStore({ ...FEW, schema })).rejects.toMatchObject({ code })
    expect(await dump()).toEqual(before)
  })

  it('is refused where its tables are not ours, and keeps its own', async () => {
    const schema = freshSchema(url)
    const client = await connected(url)
    await client.query(`CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.jobs (theirs text);
      INSERT INTO ${schema}.jobs VALUES ('precious')`)
    const opening = openPostgresStore({ ...FEW, schema })
    await expect(opening).rejects.toMatchObject({ code: 'E_STORE_FAILED' })
    const tables = 'SELECT tablename FROM pg_tables WHERE schemaname = $1'
    expect((await client.query(tables, [schema])).rows).toEqual([{ tablename: 'jobs' }])
    expect(await single(client, `SELECT theirs FROM ${schema}.jobs`)).toBe('precious')
  })

  it('is taken where it belongs to another program, whose tables stay as they are', async () => {
    const schema = freshSchema(url)
    const client = await connected(url)
    await client.query(`CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.orders (id text);
      INSERT INTO ${schema}.orders VALUES ('precious')`)
    await live(await opened({ ...FEW, schema }))
    expect(await single(client, `SELECT id FROM ${schema}.orders`)).toBe('precious')
  })
})

describe('a schema that was made by hand', () => {
  it('with what printSql prints is taken as it is', async () => {
    const database = await freshDatabase(url)
    const client = await connected(database)
    await client.query(printSql('by "hand"'))
    const made = await single(client, 'SELECT id::text FROM "by ""hand""".store')
    const store = await opened({ connectionString: database, connections: 2, schema: 'by "hand"' })
    await live(store)
    expect(await single(client, 'SELECT id::text FROM "by ""hand""".store')).toBe(made)
  })

  it('can be used by somebody who may not create anything', async () => {
    const database = await freshDatabase(url)
    const admin = await connected(database)
    const { pathname } = new URL(database)
    const role = `worker_${pathname.slice(1)}`
    await (await openPostgresStore({ connectionString: database, connections: 1 })).close()
    await admin.query(`CREATE ROLE ${role} LOGIN; GRANT USAGE ON SCHEMA pawl TO ${role};
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA pawl TO ${role};
      GRANT USAGE ON ALL SEQUENCES IN SCHEMA pawl TO ${role}`)
    onTestFinished(async () => {
      await admin.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
    })
    const connectionString = Object.assign(new URL(database), { username: role }).href
    const store = await openPostgresStore({ connectionString, connections: 2 })
    await live(store)
    expect(await store.prune({ endedBefore: store.now() + 1, limit: 10 })).toBe(1)
    await store.close()
  })
})

describe('the name of a schema', () => {
  const names = [
    ...['UPPER', 'with space', 'dotted.name', 'ünïcödé 表', '"', 'a"b', "a'b", "'; --", '$$', '$1'],
    ...['back\\slash', 'new\nline', '%s', 'select', '0', 'é'.repeat(31)],
  ]

  it.each(names)('is taken exactly as it is: %j', async (schema) => {
    const database = await freshDatabase(url)
    await live(await opened({ connectionString: database, connections: 2, schema }))
    const client = await connected(database)
    const sql = `SELECT nspname FROM pg_namespace
      WHERE nspname !~ '^pg_' AND nspname NOT IN ('public', 'information_schema')`
    expect((await client.query(sql)).rows).toEqual([{ nspname: schema }])
  })

  it.each(['', 'x'.repeat(64), 'é'.repeat(32), 'nul\0', 'half \ud800'])(
    'is refused where PostgreSQL would make another of it: %j',
    async (schema) => {
      const opening = openPostgresStore({ ...FEW, schema })
      await expect(opening).rejects.toMatchObject({ code: 'E_STORE_UNUSABLE' })
    },
  )

  it('is refused where PostgreSQL keeps it for itself', async () => {
    const opening = openPostgresStore({ ...FEW, schema: 'pg_mine' })
    await expect(opening).rejects.toMatchObject({ code: 'E_STORE_FAILED' })
  })
})

describe('a server that is not to be had', () => {
  /** How long opening took to be refused, and with what. */
  async function refusal(options: PostgresOptions) {
    const start = performance.now()
    const error = await openPostgresStore(options).then(
      () => undefined,
      (error) => error,
    )
    return { code: error?.code, ms: performance.now() - start }
  }

  it('is tried again for the given time, and then answered StoreUnavailable', async () => {
    const connectionString = 'postgres://postgres@127.0.0.1:1/postgres'
    const { code, ms } = await refusal({ connectionString, timeoutMs: 400 })
    expect(code).toBe('E_STORE_UNAVAILABLE')
    expect(ms).toBeGreaterThan(390)
    expect(ms).toBeLessThan(5000)
  })

  it('is answered so as well where it takes the connection and says nothing', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    onTestFinished(() => void silent.close())
    const { port } = silent.address() as { port: number }
    const connectionString = `postgres://postgres@127.0.0.1:${port}/postgres`
    const config = { connectionTimeoutMillis: 100 }
    const { code, ms } = await refusal({ connectionString, config, timeoutMs: 400 })
    expect(code).toBe('E_STORE_UNAVAILABLE')
    expect(ms).toBeLessThan(5000)
  })

  it('is answered at once where it does not let us in, or has no such database', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pawl-hba-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const rules = join(folder, 'pg_hba.conf')
    writeFileSync(rules, 'host all postgres all trust\nhost all all all scram-sha-256\n')
    // The server runs as another user where we are root.
    chmodSync(folder, 0o755)
    const server = await startPostgres({ settings: { hba_file: rules } })
    onTestFinished(() => server.stop())
    const client = await connected(server.url)
    await client.query(`CREATE ROLE guarded LOGIN PASSWORD 'secret'`)
    const guarded = server.url.replace('postgres@', 'guarded:wrong@')
    const missing = server.url.replace(/postgres$/, 'missing')
    for (const connectionString of [guarded, missing]) {
      const { code, ms } = await refusal({ connectionString, timeoutMs: 60_000 })
      expect(code).toBe('E_STORE_FAILED')
      expect(ms).toBeLessThan(5000)
    }
  })

  it('is not even asked for where the driver is missing, which is said', async () => {
    vi.doMock('pg', () => {
      throw new Error('Cannot find package')
    })
    onTestFinished(() => {
      vi.doUnmock('pg')
      vi.resetModules()
    })
    vi.resetModules()
    const fresh = await import('../../src/entries/postgres.ts')
    await expect(fresh.openPostgresStore(FEW)).rejects.toMatchObject({
      code: 'E_DRIVER_MISSING',
      hint: expect.stringContaining('npm install pg'),
    })
  })
})

describe('a pool of the user', () => {
  const SETTINGS = [
    ...['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout'],
    ...['plan_cache_mode', 'synchronous_commit', 'application_name', 'enable_seqscan'],
  ]

  async function settingsOf(client: pg.ClientBase): Promise<unknown> {
    const shown = SETTINGS.map((name) => `current_setting('${name}') AS ${name}`).join(', ')
    return (await client.query(`SELECT ${shown}`)).rows[0]
  }

  function newPool(max: number): pg.Pool {
    const pool = new pg.Pool({ connectionString: url, max })
    onTestFinished(() => pool.end())
    return pool
  }

  it('is used, is not ended with the store, and keeps no settings of ours', async () => {
    const pool = newPool(3)
    const untouched = await settingsOf(await connected(url))
    const store = await openPostgresStore({ pool, schema: freshSchema(url), durability: 'relaxed' })
    const woken = new Promise<void>((resolve) => void store.onWake(resolve))
    await Promise.all([live(store), live(store), live(store)])
    await woken
    await store.close()
    const clients = await Promise.all([pool.connect(), pool.connect(), pool.connect()])
    for (const client of clients) {
      expect(await settingsOf(client)).toEqual(untouched)
      const own = `SELECT count(*)::int AS n FROM pg_locks
        WHERE locktype = 'advisory' AND pid = pg_backend_pid()`
      expect((await client.query(own)).rows).toEqual([{ n: 0 }])
      expect((await client.query('SELECT pg_listening_channels()')).rows).toEqual([])
      client.release()
    }
  })

  it('is given back without the listeners that the store had put on it', async () => {
    const pool = newPool(1)
    const schema = freshSchema(url)
    const before = pool.listenerCount('error')
    for (let n = 0; n < 3; n++) await (await openPostgresStore({ pool, schema })).close()
    expect(pool.listenerCount('error')).toBe(before)
  })

  it('may consist of one connection', async () => {
    const store = await opened({ pool: newPool(1), schema: freshSchema(url) })
    await Promise.all([live(store), store.counts(), store.tail(undefined, 10)])
  })
})

describe('durability', () => {
  it.each([
    ['full', 'on'],
    ['relaxed', 'off'],
  ] as const)('%s is kept whatever the database does otherwise', async (durability, expected) => {
    const database = await freshDatabase(url)
    const client = await connected(database)
    const name = new URL(database).pathname.slice(1)
    for (const usual of ['off', 'on']) {
      await client.query(`ALTER DATABASE ${name} SET synchronous_commit = ${usual}`)
      const own = await openPostgresStore({ connectionString: database, durability })
      expect(await live(own, 'synchronous_commit')).toBe(expected)
      await own.close()
      const pool = new pg.Pool({ connectionString: database, max: 2 })
      const borrowing = await openPostgresStore({ pool, durability })
      expect(await live(borrowing, 'synchronous_commit')).toBe(expected)
      await borrowing.close()
      await pool.end()
    }
  })

  it('that the database weakens by default is reported at opening and by the doctor', async () => {
    const database = await freshDatabase(url)
    const client = await connected(database)
    const name = new URL(database).pathname.slice(1)
    const look = async () => {
      const lines: unknown[] = []
      const ignore = () => {}
      const warn = ({ event }: Readonly<Record<string, unknown>>) => lines.push(event)
      const logger = { debug: ignore, info: ignore, warn, error: ignore }
      const store = await opened({ connectionString: database, connections: 2, logger })
      const parts = { store, lifecycles: LIFECYCLES, environment: systemEnvironment() }
      const { findings } = await new Doctor(parts).check()
      return { lines, said: findings.filter(({ what }) => what.includes('synchronous_commit')) }
    }
    expect(await look()).toEqual({ lines: [], said: [] })
    await client.query(`ALTER DATABASE ${name} SET synchronous_commit = off`)
    expect(await look()).toMatchObject({
      lines: ['store.commits_asynchronous'],
      said: [{ check: 'writes-survive', severity: 'warning' }],
    })
  })

  it('full does not weaken what the database does beyond it', async () => {
    const database = await freshDatabase(url)
    const client = await connected(database)
    const name = new URL(database).pathname.slice(1)
    await client.query(`ALTER DATABASE ${name} SET synchronous_commit = remote_apply`)
    const store = await opened({ connectionString: database, connections: 2 })
    expect(await live(store, 'synchronous_commit')).toBe('remote_apply')
  })
})
