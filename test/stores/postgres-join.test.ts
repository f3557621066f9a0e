// Jobs that are enqueued in the user's own transaction stand or fall with it, whatever library the
// user talks to PostgreSQL with. The adapters are those of docs/guides/postgres-store.md.
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely'
import type { PostgresTx } from 'pawl/postgres'
import { standard } from 'pawl/rules'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { systemEnvironment } from '../../src/environment/system.ts'
import type { OnConflict, Store } from '../../src/stores/contract/store.ts'
import { openPostgresStore } from '../../src/stores/postgres/open.ts'
import { connected } from '../support/postgres/clients.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres/databases.ts'

const url = sharedPostgres()
const schema = `join_${process.pid}`
const { ids } = systemEnvironment()
let store: Store
let admin: pg.Client

beforeAll(async () => {
  admin = new pg.Client({ connectionString: url })
  await admin.connect()
  store = await openPostgresStore({ connectionString: url, schema, connections: 3 })
  await admin.query(`CREATE TABLE ${schema}.orders (id text PRIMARY KEY)`)
  // Stands for whatever makes the database refuse: a full disk, a constraint, a time-out.
  await admin.query(`
    CREATE FUNCTION ${schema}.refuse_bad() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN RAISE EXCEPTION 'bad job'; END$$;
    CREATE TRIGGER bad_insert BEFORE INSERT ON ${schema}.jobs FOR EACH ROW
      WHEN (NEW.type = 'bad') EXECUTE FUNCTION ${schema}.refuse_bad();
    CREATE TRIGGER bad_update BEFORE UPDATE ON ${schema}.jobs FOR EACH ROW
      WHEN (NEW.key = 'fragile') EXECUTE FUNCTION ${schema}.refuse_bad()`)
})

beforeEach(async () => {
  await admin.query(`SET session_replication_role = replica;
    DELETE FROM ${schema}.jobs; DELETE FROM ${schema}.ledger; DELETE FROM ${schema}.orders;
    RESET session_replication_role`)
})

afterAll(async () => {
  await store.close()
  await admin.query(`DROP SCHEMA ${schema} CASCADE`)
  await admin.end()
})

interface Wanted {
  readonly type?: string
  readonly key?: string
  readonly onConflict?: OnConflict
  readonly input?: string
}

function enqueue(tx: unknown, { type = 'a', key, onConflict, input = '1' }: Wanted = {}) {
  const command = { jobId: ids.next(), type, queue: 'q', ...(key && { key }) }
  const item = { lifecycle: standard, command, input, ...(onConflict && { onConflict }) }
  return store.enqueue([item], { tx })
}

const jobs = async () => (await store.list({})).items.length

async function orders(): Promise<number> {
  const { rows } = await admin.query(`SELECT id FROM ${schema}.orders`)
  return rows.length
}

const INSERT_ORDER = `INSERT INTO ${schema}.orders VALUES ('o-1')`

/** Runs a function in a transaction of some library: what it throws rolls the transaction back. */
type Transact = (work: (tx: PostgresTx) => Promise<void>) => Promise<unknown>

async function begin(client: pg.ClientBase, work: (tx: PostgresTx) => Promise<void>) {
  await client.query('BEGIN')
  try {
    await work(client)
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  }
}

function newPool(): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 1 })
  onTestFinished(() => pool.end())
  return pool
}

/** How each library is used; the adapters are what the guide shows. */
const LIBRARIES: Readonly<Record<string, Transact>> = {
  'a client of pg': async (work) => begin(await connected(url), work),

  'a client from a pool of pg': async (work) => {
    const client = await newPool().connect()
    try {
      await begin(client, work)
    } finally {
      client.release()
    }
  },

  Kysely: async (work) => {
    const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool: newPool() }) })
    await db.transaction().execute((trx) =>
      work({
        query: (text, values = []) => trx.executeQuery(CompiledQuery.raw(text, values)),
      }),
    )
  },

  Drizzle: async (work) => {
    const db = drizzle({ client: newPool() })
    await db.transaction((tx) =>
      work({
        query: (text, values = []) =>
          tx.execute(
            sql.join(
              text
                .split(/\$(\d+)/)
                .map((part, i) => (i % 2 ? sql`${values[Number(part) - 1]}` : sql.raw(part))),
            ),
          ),
      }),
    )
  },

  'postgres.js': async (work) => {
    const db = postgres(url, { max: 1 })
    onTestFinished(() => db.end())
    await db.begin((tx) =>
      work({
        query: async (text, values = []) => ({
          rows: await tx.unsafe(text, values as (string | number | null)[]),
        }),
      }),
    )
  },
}

describe.each(Object.entries(LIBRARIES))('in a transaction of %s', (_, transact) => {
  it('a job is there when that commits, with the writes of the user, and not before', async () => {
    await transact(async (tx) => {
      await tx.query(INSERT_ORDER)
      expect(await enqueue(tx)).toMatchObject([{ kind: 'created', job: { attempt: 0, seq: 1 } }])
      expect(await jobs()).toBe(0)
    })
    expect([await jobs(), await orders()]).toEqual([1, 1])
  })

  it('a job was never there when that rolls back', async () => {
    const leave = new Error('changed my mind')
    const leaving = transact(async (tx) => {
      await tx.query(INSERT_ORDER)
      await enqueue(tx)
      throw leave
    })
    await expect(leaving).rejects.toBe(leave)
    expect([await jobs(), await orders()]).toEqual([0, 0])
  })

  it('a key that is taken is answered as outside', async () => {
    const [made] = await enqueue(undefined, { key: 'k' })
    if (made?.kind !== 'created') throw new Error('the job was not created')
    const { job } = made
    const answers: unknown[] = []
    await transact(async (tx) => {
      for (const onConflict of ['existing', 'reject', 'replace'] as const) {
        answers.push(...(await enqueue(tx, { key: 'k', onConflict, input: `"${onConflict}"` })))
      }
    })
    expect(answers).toMatchObject([
      { kind: 'existing', job },
      { kind: 'rejected', error: { code: 'E_KEY_TAKEN' } },
      { kind: 'replaced', job: { id: job.id, seq: 2 } },
    ])
    expect(await store.payloads(job.id)).toEqual({ input: '"replace"' })
    expect(await jobs()).toBe(1)
  })

  it('a job is claimed and committed like any other', async () => {
    await transact(async (tx) => {
      await enqueue(tx, { key: 'k', input: '{"text":"a \\"quoted\\" \\\\ word, {brace}, é"}' })
    })
    const [held] = await store.claim({ worker: 'w', limit: 1, leaseMs: 60_000, start: true })
    if (held === undefined) throw new Error('nothing was claimed')
    expect(JSON.parse(held.input)).toEqual({ text: 'a "quoted" \\ word, {brace}, é' })
    expect(await store.commit(held, () => '1')).toMatchObject({ kind: 'done' })
    expect(await store.getByKey('a', 'k')).toMatchObject({ state: 'succeeded' })
  })
})

const OWN_SAVEPOINTS = ['a client of pg', 'Kysely', 'Drizzle'] as const

describe.each(OWN_SAVEPOINTS)('an enqueue that the database refuses, in %s', (library) => {
  const transact = LIBRARIES[library] as Transact

  it('leaves the transaction as it was, to be used and committed', async () => {
    await transact(async (tx) => {
      await tx.query(INSERT_ORDER)
      await expect(enqueue(tx, { type: 'bad' })).rejects.toMatchObject({ code: 'E_STORE_FAILED' })
      expect(await enqueue(tx)).toMatchObject([{ kind: 'created' }])
    })
    expect([await jobs(), await orders()]).toEqual([1, 1])
  })

  it('is told from a transaction that had failed before', async () => {
    const failing = transact(async (tx) => {
      await expect(tx.query('SELECT 1 / 0')).rejects.toThrow()
      await expect(enqueue(tx)).rejects.toMatchObject({ code: 'E_TX_INVALID' })
      throw new Error('left')
    })
    await expect(failing).rejects.toThrow('left')
  })
})

describe('two enqueues at the same time in one transaction', () => {
  it('do not undo each other: what was answered as created is there', async () => {
    await enqueue(undefined, { key: 'fragile' })
    const client = await connected(url)
    await client.query('BEGIN')
    const [bad, good] = await Promise.allSettled([
      enqueue(client, { key: 'fragile', onConflict: 'replace' }),
      enqueue(client),
    ])
    await client.query('COMMIT')
    expect(bad).toMatchObject({ status: 'rejected', reason: { code: 'E_STORE_FAILED' } })
    expect(good).toMatchObject({ status: 'fulfilled', value: [{ kind: 'created' }] })
    expect(await jobs()).toBe(2)
  })
})

describe('a transaction is refused, and nothing is written', () => {
  const refusal = { code: 'E_TX_INVALID' }

  it('where it is no handle', async () => {
    const db = drizzle({ client: newPool() })
    const noHandles = [null, 7, 'tx', {}, { query: 1 }, [], db, postgres(url)]
    for (const tx of noHandles) await expect(enqueue(tx)).rejects.toMatchObject(refusal)
    expect(await jobs()).toBe(0)
  })

  it('where it was not begun, or is a pool, and both are left as they were', async () => {
    const client = await connected(url)
    for (const handle of [client, newPool()]) {
      await expect(enqueue(handle)).rejects.toMatchObject(refusal)
      expect((await handle.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
    }
    expect(await jobs()).toBe(0)
  })

  it('where it is of another database, also one with a store of its own', async () => {
    const elsewhere = await freshDatabase(url)
    const client = await connected(elsewhere)
    const refuse = async () => {
      await client.query('BEGIN')
      await expect(enqueue(client)).rejects.toMatchObject(refusal)
      // The user's transaction is as it was.
      expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
      await client.query('ROLLBACK')
    }
    await refuse()
    const other = await openPostgresStore({ connectionString: elsewhere, schema, connections: 1 })
    await refuse()
    expect((await other.list({})).items).toEqual([])
    await other.close()
  })

  it('where its connection has gone', async () => {
    const client = await connected(url)
    await client.query('BEGIN')
    const { rows } = await client.query('SELECT pg_backend_pid() AS pid')
    await admin.query('SELECT pg_terminate_backend($1)', [rows[0].pid])
    await expect(enqueue(client)).rejects.toMatchObject({
      code: expect.stringMatching(/^E_(STORE_FAILED|STORE_UNAVAILABLE|TX_INVALID)$/),
    })
    expect(await jobs()).toBe(0)
  })
})

describe('in the transaction of a commit', () => {
  async function claimOne() {
    await enqueue(undefined, { type: 'parent' })
    const types = ['parent']
    const [held] = await store.claim({ worker: 'w', types, limit: 1, leaseMs: 60_000, start: true })
    if (held === undefined) throw new Error('nothing was claimed')
    return held
  }

  it('a job is accepted with the result, and not if the function throws', async () => {
    const held = await claimOne()
    const leave = new Error('changed my mind')
    const leaving = store.commit(held, async (tx) => {
      await enqueue(tx)
      throw leave
    })
    await expect(leaving).rejects.toBe(leave)
    expect(await jobs()).toBe(1)
    await store.commit(held, async (tx) => {
      await tx.query(INSERT_ORDER)
      expect(await enqueue(tx, { key: 'child' })).toMatchObject([{ kind: 'created' }])
      expect(await enqueue(tx, { key: 'child' })).toMatchObject([{ kind: 'existing' }])
      return '1'
    })
    expect([await jobs(), await orders()]).toEqual([2, 1])
  })

  it('an enqueue that the database refuses leaves the commit as it was', async () => {
    const held = await claimOne()
    const answer = await store.commit(held, async (tx) => {
      await tx.query(INSERT_ORDER)
      await expect(enqueue(tx, { type: 'bad' })).rejects.toMatchObject({ code: 'E_STORE_FAILED' })
      await enqueue(tx)
      return '1'
    })
    expect(answer).toMatchObject({ kind: 'done' })
    expect([await jobs(), await orders()]).toEqual([2, 1])
  })

  it('an enqueue without the tx is refused, and after the end the tx is as well', async () => {
    const held = await claimOne()
    let kept: unknown
    await store.commit(held, async (tx) => {
      kept = tx
      await expect(enqueue(undefined)).rejects.toMatchObject({ code: 'E_USE_TX' })
      return '1'
    })
    await expect(enqueue(kept)).rejects.toMatchObject({
      code: expect.stringMatching(/^E_TX_(ENDED|INVALID)$/),
    })
    expect(await jobs()).toBe(1)
  })
})
