// What the doctor meets on PostgreSQL alone: catalogues of several releases and under foreign
// settings, ids that are not unique any more, and others who hold locks.
import { readFileSync } from 'node:fs'
import pg from 'pg'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  MANIFEST_PATH,
  MANIFEST_SCHEMA,
  manifestDocument,
} from '../../scripts/documents/postgres-manifest.ts'
import { systemEnvironment } from '../../src/environment/system.ts'
import type { Mending, StoredJob } from '../../src/stores/contract/examination.ts'
import type { Store } from '../../src/stores/contract/store.ts'
import { CATALOGUE_SETTINGS, readCatalogue } from '../../src/stores/postgres/catalogue.ts'
import { Database } from '../../src/stores/postgres/connect.ts'
import { openPostgresStore } from '../../src/stores/postgres/open.ts'
import type { PostgresOptions } from '../../src/stores/postgres/options.ts'
import { findDebianPostgres } from '../support/postgres/binaries.ts'
import { connected } from '../support/postgres/clients.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres/databases.ts'
import { startPostgres } from '../support/postgres/server.ts'
import {
  allStoredJobs,
  type Examined,
  enqueue,
  fill,
  mendingOf,
  refOf,
  STORES,
  succeeded,
} from './examined-stores.ts'

const BY = { operator: 'ann', note: 'because' }
const WAIT = { timeout: 10_000, interval: 20 }
const [, { open }] = STORES
const debian = findDebianPostgres()

async function opened(options: PostgresOptions): Promise<Store> {
  const store = await openPostgresStore({ connections: 2, ...options })
  onTestFinished(() => store.close())
  return store
}

async function onDebian(): Promise<string> {
  const server = await startPostgres(debian === undefined ? {} : { binaries: debian })
  onTestFinished(() => server.stop())
  return server.url
}

const SERVERS = [
  { name: 'the development dependencies', url: () => freshDatabase(sharedPostgres()) },
  ...(debian === undefined ? [] : [{ name: 'a Debian system', url: onDebian }]),
]

describe.each(SERVERS)('the manifest on the PostgreSQL of $name', ({ url }) => {
  it('is what the migrations make, and nothing else', async () => {
    const connectionString = await url()
    await opened({ connectionString, schema: MANIFEST_SCHEMA })
    const pool = new pg.Pool({ connectionString, max: 1 })
    onTestFinished(() => pool.end())
    const schema = `"${MANIFEST_SCHEMA}"`
    const options = {
      schema,
      durability: 'full',
      borrowed: true,
      timeoutMs: 5000,
    } as const
    const database = new Database(pool, options, systemEnvironment())
    const { objects } = await database.transaction(
      (session) => readCatalogue(session, schema),
      undefined,
      CATALOGUE_SETTINGS,
    )
    expect(manifestDocument(objects)).toBe(readFileSync(MANIFEST_PATH, 'utf8'))
    const names = objects.map(({ kind, name }) => `${kind} ${name}`)
    expect(new Set(names).size).toBe(names.length)
  })

  it('holds in schemas of any name, and under settings of the user’s own', async () => {
    const connectionString = await url()
    const settings = '-c search_path=pawl -c quote_all_identifiers=on'
    const config = { options: settings }
    const names = ['pawl', 'new', 'jobs', 'Select', `a"b.c'$$ $function$ \\`, '@schema', '$&', 'é']
    for (const schema of names) {
      const store = await opened({ connectionString, schema, config })
      expect(await store.examination.drift(), schema).toEqual([])
      await store.close()
    }
  })

  it('restores what was lost, in a schema with a hostile name as well', async () => {
    const connectionString = await url()
    const schema = `o'"ld.$$`
    const ident = `"o'""ld.$$"`
    const store = await opened({ connectionString, schema })
    const raw = await connected(connectionString)
    await raw.query(`DROP FUNCTION ${ident}.refuse, ${ident}.refuse_while_job_exists CASCADE`)
    await raw.query(`ALTER TABLE ${ident}.jobs DROP CONSTRAINT jobs_pkey`)
    const found = await store.examination.drift()
    expect(found.map(({ kind }) => kind).slice(0, 3)).toEqual([
      'function',
      'function',
      'constraint',
    ])
    for (const drift of found) await store.examination.restore(drift)
    expect(await store.examination.drift()).toEqual([])
  })
})

describe('what is different', () => {
  /** Changes something, which must be found so, restored, and then gone. */
  async function expectRestored(examined: Examined, change: string, kind: string, name: string) {
    const { examination } = examined.store
    await examined.sql(change)
    const found = await examination.drift()
    expect(found, change).toMatchObject([{ kind, name, problem: 'different' }])
    for (const drift of found) await examination.restore(drift)
    expect(await examination.drift(), change).toEqual([])
  }

  it('is found and made again: triggers, functions, indexes and constraints', async () => {
    const examined = await open()
    await fill(examined)
    const off = 'ALTER TABLE @ledger DISABLE TRIGGER ledger_is_never_deleted'
    await expectRestored(examined, off, 'trigger', 'ledger_is_never_deleted')
    const replica = 'ALTER TABLE @jobs ENABLE REPLICA TRIGGER succeeded_is_final'
    await expectRestored(examined, replica, 'trigger', 'succeeded_is_final')
    const mild = `CREATE OR REPLACE FUNCTION @refuse() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN RETURN NULL; END'`
    await expectRestored(examined, mild, 'function', 'refuse')
    const commit = `DROP INDEX @one_commit;
      CREATE INDEX one_commit ON @ledger (job) WHERE kind = 30`
    await expectRestored(examined, commit, 'index', 'one_commit')
    const check = `ALTER TABLE @jobs DROP CONSTRAINT jobs_seq_check,
      ADD CONSTRAINT jobs_seq_check CHECK (seq >= 0)`
    await expectRestored(examined, check, 'constraint', 'jobs_seq_check')
    const invalid = `ALTER TABLE @jobs DROP CONSTRAINT jobs_seq_check,
      ADD CONSTRAINT jobs_seq_check CHECK (seq >= 1) NOT VALID`
    await expectRestored(examined, invalid, 'constraint', 'jobs_seq_check')
    const key = `ALTER TABLE @outbox DROP CONSTRAINT outbox_job_name_n_key,
      ADD CONSTRAINT outbox_job_name_n_key UNIQUE (job, n)`
    await examined.sql('DELETE FROM @outbox')
    await expectRestored(examined, key, 'constraint', 'outbox_job_name_n_key')
    await expect(examined.sql('DELETE FROM @ledger')).rejects.toThrow('P8')
  })

  it('is an index that stands where a primary key should', async () => {
    const examined = await open()
    await examined.sql(`ALTER TABLE @jobs DROP CONSTRAINT jobs_pkey;
      CREATE UNIQUE INDEX jobs_pkey ON @jobs (id)`)
    const { examination } = examined.store
    const found = await examination.drift()
    expect(found).toMatchObject([{ kind: 'constraint', name: 'jobs_pkey', problem: 'missing' }])
    for (const drift of found) await examination.restore(drift)
    expect(await examination.drift()).toEqual([])
  })

  it('cannot be restored where it is a table or a column of one', async () => {
    const examined = await open()
    const { examination } = examined.store
    await examined.sql(`ALTER TABLE @workers DROP COLUMN info; DROP TABLE @run_contents;
      ALTER TABLE @jobs ALTER COLUMN queue DROP NOT NULL, ADD COLUMN mine int`)
    const found = (await examination.drift()).filter(({ kind }) => kind === 'table')
    expect(found).toMatchObject([
      { name: 'jobs', problem: 'different' },
      { name: 'run_contents', problem: 'missing' },
      { name: 'workers', problem: 'different' },
    ])
    for (const drift of found) {
      const refusal = { code: 'E_NOT_RESTORABLE', details: { table: drift.name } }
      await expect(examination.restore(drift)).rejects.toMatchObject(refusal)
    }
  })
})

describe('rows of one id', () => {
  it('come together on one page, are told, and all but one can be taken aside', async () => {
    const examined = await open()
    const { store, sql, environment } = examined
    const ids = [await enqueue(examined, 'a'), await enqueue(examined, 'b')]
    const [id] = ids as [string]
    await sql(`ALTER TABLE @jobs DROP CONSTRAINT jobs_pkey;
      INSERT INTO @jobs SELECT * FROM @jobs WHERE id = '${id}';
      UPDATE @jobs SET attempt = 9 WHERE ctid = (SELECT max(ctid) FROM @jobs)`)
    const seen = await allStoredJobs(examined, 1)
    expect(seen.map(({ ref, twins }) => [ref, twins.length])).toEqual([
      [ids[0], 1],
      [ids[1], 0],
    ])
    expect(await store.examination.scan()).toMatchObject({ duplicates: 1 })
    expect(await store.examination.duplicates(10)).toEqual([{ id }])
    const before = await store.get(id)
    if (before === undefined) throw new Error('the job is gone')
    const mending = await store.examination.mend(
      id,
      ({ row }, now) => {
        const aside = [{ origin: 'jobs', handle: row?.handle ?? '' } as const]
        return mendingOf(before, { priority: 4 }, now, aside)
      },
      BY,
    )
    const [left, ...others] = await sql(`SELECT * FROM @jobs WHERE id = '${id}'`)
    expect(others).toEqual([])
    expect(left).toMatchObject({ priority: 4, updated_at: String(environment.clock.now()) })
    expect(await store.get(id)).toEqual(mending?.after?.job)
    for (const drift of await store.examination.drift()) await store.examination.restore(drift)
    expect(await store.examination.drift()).toEqual([])
  })

  it('are found with an id that is the first or the last that can be', async () => {
    const examined = await open()
    const first = '00000000-0000-0000-0000-000000000000'
    const last = 'ffffffff-ffff-ffff-ffff-ffffffffffff'
    const id = await enqueue(examined, 'a')
    await examined.sql(`UPDATE @jobs SET id = '${first}' WHERE id = '${id}';
      INSERT INTO @outbox (job, type, name, n, payload, run_at)
        VALUES ('${last}', 'mail', 'mail', 1, '{}', 1)`)
    for (const limit of [1, 10]) {
      const refs = (await allStoredJobs(examined, limit)).map(({ ref }) => ref)
      expect(refs).toEqual([first, id, last])
    }
  })
})

describe('over a pool of the user’s own', () => {
  /** A store whose connection can be made to break when a transaction has just been committed. */
  async function borrowed({ sql, environment }: Examined) {
    const [row] = await sql('SELECT current_database() AS name')
    const url = Object.assign(new URL(sharedPostgres()), { pathname: `/${String(row?.name)}` })
    const pool = new pg.Pool({ connectionString: url.href, max: 2 })
    onTestFinished(() => pool.end())
    const lost = { next: false, count: 0 }
    pool.on('connect', (client) => {
      const query = client.query.bind(client) as (asked: pg.QueryConfig) => Promise<unknown>
      const losing = async (asked: pg.QueryConfig) => {
        const answer = await query(asked)
        if (!lost.next || asked.text !== 'COMMIT') return answer
        lost.next = false
        lost.count++
        throw new Error('Connection terminated unexpectedly')
      }
      Object.assign(client, { query: losing })
    })
    const timers = systemEnvironment().timers
    const options = { pool, environment: { ...environment, timers }, clock: 'environment' } as const
    return { store: await opened(options), lost, pool }
  }

  it('everything is seen, and nothing of its settings is left there', async () => {
    const examined = await open()
    const jobs = await fill(examined)
    const { store, pool } = await borrowed(examined)
    const names = ['search_path', 'quote_all_identifiers', 'statement_timeout', 'enable_seqscan']
    const settings = names.map((name) => `current_setting('${name}') AS ${name}`)
    const shown = `SELECT ${settings.join(', ')}`
    const usual = await examined.sql(shown)
    const seen = await allStoredJobs({ ...examined, store }, 2)
    expect(seen.map(({ ref }) => ref).sort()).toEqual(Object.values(jobs).sort())
    expect(await store.examination.drift()).toEqual([])
    expect(await store.examination.counters()).toEqual([])
    await store.examination.recount()
    await succeeded({ ...examined, store }, 'after')
    const client = await pool.connect()
    const { rows } = await client.query({ text: shown })
    client.release()
    expect(rows).toEqual(usual)
  })

  it('a repair whose answer was lost is done once', async () => {
    const examined = await open()
    const { store, lost } = await borrowed(examined)
    const id = await succeeded(examined, 'a')
    const job = await store.get(id)
    if (job === undefined) throw new Error('the job is gone')
    lost.next = true
    const mending = mendingOf(job, { priority: 1 }, store.now())
    expect(await store.examination.mend(id, () => mending, BY)).toBe(mending)
    expect((await store.facts(id)).map(({ trigger }) => trigger)).toEqual([
      ...['create', 'claim', 'commit', 'repair'],
    ])
    lost.next = true
    const decide = ({ facts }: StoredJob): Mending => ({
      why: 'nonsense',
      aside: facts.slice(-1).map(({ handle }) => ({ origin: 'ledger', handle })),
    })
    await store.examination.mend(id, decide, BY)
    expect(lost).toEqual({ next: false, count: 2 })
    expect(await store.facts(id)).toHaveLength(3)
    expect(await examined.sql('SELECT 1 FROM @quarantined')).toHaveLength(1)
  })

  it('a recount, a duty and a restored object are the same when they are done twice', async () => {
    const examined = await open()
    const { store, lost } = await borrowed(examined)
    await examined.sql(`INSERT INTO @ended_counts VALUES ('a', 'failed', 3);
      DROP INDEX @jobs_ready; ALTER TABLE @jobs DROP CONSTRAINT jobs_pkey`)
    lost.next = true
    await store.examination.recount()
    expect(await store.examination.counters()).toEqual([])
    lost.next = true
    expect(await store.examination.takeDuty('look', 'one', 1000)).toEqual({})
    lost.next = true
    expect(await store.examination.leaveDuty('look', 'one', 'here')).toBe(true)
    for (const drift of await store.examination.drift()) {
      lost.next = true
      await store.examination.restore(drift)
    }
    expect(lost).toEqual({ next: false, count: 5 })
    expect(await store.examination.drift()).toEqual([])
  })
})

describe('a mending and others', () => {
  it('writes its fact where the row then stands in the order of the ledger', async () => {
    const examined = await open()
    const { store, sql } = examined
    const id = await succeeded(examined, 'a')
    const job = await store.get(id)
    if (job === undefined) throw new Error('the job is gone')
    await store.examination.mend(id, (_, now) => mendingOf(job, { priority: 1 }, now), BY)
    const places = await sql(`SELECT place = tx AS same FROM @jobs JOIN @ledger ON job = id
      WHERE id = '${id}' ORDER BY ledger.seq DESC LIMIT 1`)
    expect(places).toEqual([{ same: true }])
  })

  /** Another process that has written to the row of a job, and has not ended. */
  async function writing(examined: Examined, id: string): Promise<pg.Client> {
    const [row] = await examined.sql('SELECT current_database() AS name')
    const url = Object.assign(new URL(sharedPostgres()), { pathname: `/${String(row?.name)}` })
    const client = await connected(url.href)
    await client.query('BEGIN')
    await client.query(`UPDATE pawl.jobs SET updated_at = updated_at WHERE id = '${id}'`)
    return client
  }

  it('waits for all who write where it lifts a guard, and never in a circle', async () => {
    const examined = await open()
    const { store, sql } = examined
    const [id, other] = [await succeeded(examined, 'a'), await enqueue(examined, 'b')]
    const job = await store.get(id)
    if (job === undefined) throw new Error('the job is gone')
    const client = await writing(examined, other)
    const mending = store.examination.mend(id, (_, now) => mendingOf(job, { priority: 1 }, now), BY)
    const waiting = `SELECT count(*)::int AS n FROM pg_locks
      WHERE NOT granted AND mode = 'ShareRowExclusiveLock'`
    await vi.waitFor(async () => expect(await sql(waiting)).toEqual([{ n: 1 }]), WAIT)
    // Who waits for the table does not hold the row.
    await client.query(`SELECT 1 FROM pawl.jobs WHERE id = '${id}' FOR UPDATE NOWAIT`)
    await client.query('COMMIT')
    expect(await mending).toBeDefined()
    expect(await store.get(id)).toMatchObject({ priority: 1 })
    expect(await store.examination.drift()).toEqual([])
  })

  it('waits for nobody where it only adds a fact to a job that succeeded', async () => {
    const examined = await open()
    const { store } = examined
    const [id, other] = [await succeeded(examined, 'a'), await enqueue(examined, 'b')]
    const job = await store.get(id)
    if (job === undefined) throw new Error('the job is gone')
    const client = await writing(examined, other)
    await store.examination.mend(id, (_, now) => mendingOf(job, {}, now), BY)
    expect((await store.facts(id)).at(-1)).toMatchObject({ trigger: 'repair', seq: job.seq + 1 })
    await client.query('ROLLBACK')
  })

  it('decides on what others have written when it comes to its turn', async () => {
    const examined = await open()
    const { store } = examined
    const id = await enqueue(examined, 'a')
    const ref = await refOf(examined, id)
    const client = await writing(examined, id)
    await client.query(`UPDATE pawl.jobs SET priority = 42 WHERE id = '${id}'`)
    const seen: unknown[] = []
    const mending = store.examination.mend(
      ref,
      ({ row }) => {
        seen.push(row?.priority)
        return undefined
      },
      BY,
    )
    const waiting = `SELECT count(*)::int AS n FROM pg_locks WHERE NOT granted`
    await vi.waitFor(async () => expect(await examined.sql(waiting)).toEqual([{ n: 1 }]), WAIT)
    await client.query('COMMIT')
    await mending
    expect(seen).toEqual([42])
  })
})
