// How seals are made: in ranges that are bounded, apart from retention; and what the numbers of
// SQLite tell without any seal.
import { sealUp, verifySeals } from 'pawl/audit'
import { standard } from 'pawl/rules'
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Held, Store } from '../../src/stores/contract/store.ts'
import { openPostgresStore } from '../../src/stores/postgres/open.ts'
import { Connection } from '../../src/stores/sqlite/connect.ts'
import { loadDriver } from '../../src/stores/sqlite/driver.ts'
import { missingRows } from '../../src/stores/sqlite/statements/seals.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { freshFolder } from '../processes/folder.ts'
import { freshSchema, ownPostgres } from '../support/postgres/databases.ts'

const server = ownPostgres()
let ids = 0

const item = (more: object = {}) => ({
  lifecycle: standard,
  input: '1',
  command: {
    jobId: `0198a1b2-0000-7000-8000-${String(++ids).padStart(12, '0')}`,
    type: 'mail',
    queue: 'q',
    ...more,
  },
})

const items = (count: number) => Array.from({ length: count }, () => item())

async function openPostgres(): Promise<{ store: Store; schema: string }> {
  const schema = freshSchema(server.url())
  const store = await openPostgresStore({ connectionString: server.url(), schema })
  onTestFinished(() => store.close())
  return { store, schema }
}

async function openFile(): Promise<{ store: Store; path: string }> {
  const path = `${freshFolder()}/jobs.db`
  const store = await openSqliteStore({ path, durability: 'relaxed' })
  onTestFinished(() => store.close())
  return { store, path }
}

describe.each([
  ['SQLite', openFile, [10_000, 2500]],
  // What one transaction wrote is not divided.
  ['PostgreSQL', openPostgres, [6000, 6500]],
] as const)('on %s', (_, open, expected) => {
  it('a seal covers at most ten thousand facts, in the order of the ledger', async () => {
    const { store } = await open()
    await store.enqueue(items(6000))
    await store.enqueue(items(6000))
    await store.enqueue(items(500))
    const made: number[] = []
    for await (const { facts } of sealUp(store)) made.push(facts)
    expect(made).toEqual(expected)
    for await (const finding of verifySeals(store.seals)) expect(finding).toBeUndefined()
  })

  it('what comes in while seals are made is left for the next time', async () => {
    const { store } = await open()
    await store.enqueue(items(3))
    let made = 0
    for await (const _seal of sealUp(store)) {
      made++
      await store.enqueue(items(1))
      expect(made).toBeLessThan(3)
    }
    const [next] = await store.seals.list(0, 1)
    expect(next?.facts).toBe(3)
  })
})

describe('on PostgreSQL, seals and retention', () => {
  /** Somebody who holds the lock of the one or the other, until the returned end is called. */
  async function holding(schema: string, lock: string): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: server.url() })
    await client.connect()
    onTestFinished(() => client.end())
    await client.query(`BEGIN; SELECT ${lock}(hashtext('pawl seals "${schema}"'), 2)`)
    return client
  }

  async function untilSomebodyWaits(client: pg.Client): Promise<void> {
    const sql = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    for (let looks = 0; looks < 2000; looks++) {
      if ((await client.query(sql)).rows.length > 0) return
    }
    throw new Error('nobody waits')
  }

  it.each([
    ['a seal waits for retention', 'pg_advisory_xact_lock_shared', (s: Store) => s.seals.make()],
    [
      'retention waits for a seal',
      'pg_advisory_xact_lock',
      (s: Store) => s.prune({ endedBefore: s.now() + 10_000, limit: 10 }),
    ],
  ])('%s that has not committed yet', async (_what, lock, act) => {
    const { store, schema } = await openPostgres()
    const one = item()
    await store.enqueue([one])
    await store.cancel([one.command.jobId], { actor: 'client' })
    const client = await holding(schema, lock)
    const acting = act(store)
    await untilSomebodyWaits(client)
    await client.query('COMMIT')
    expect(await acting).toBeTruthy()
    for await (const finding of verifySeals(store.seals)) expect(finding).toBeUndefined()
  })
})

describe('numbers that SQLite gives out', () => {
  async function play(store: Store): Promise<void> {
    const keyed = item({ key: 'k' })
    await store.enqueue([keyed, ...items(3)])
    // Taken keys and ids, in every way that a job can be written.
    await store.enqueue([item({ key: 'k' }), { ...item(), command: keyed.command }])
    await store.enqueue([{ ...item(), command: { ...item().command, jobId: keyed.command.jobId } }])
    await store.enqueue([
      { ...item(), command: { ...keyed.command, key: 'other', tags: ['t'] } },
      ...items(2),
    ])
    const claim = { worker: 'w', limit: 3, leaseMs: 30_000, start: true }
    const held = (await store.claim(claim)) as Held[]
    const [first, second] = held as [Held, Held]
    await store.commit(first, () => '1')
    await store
      .commit(second, () => Promise.reject(new Error('rolled back')))
      .catch((error: Error) => expect(error.message).toBe('rolled back'))
    await store.prune({ endedBefore: store.now() + 1000, limit: 10 })
    await store.enqueue(items(1))
  }

  function look(path: string, sql?: string): ReturnType<typeof missingRows> {
    const connection = new Connection(new (loadDriver().DatabaseSync)(path))
    try {
      if (sql !== undefined) connection.database.exec(sql)
      return missingRows(connection)
    } finally {
      connection.close()
    }
  }

  it('have no gaps, so that whatever was not removed by retention is missing', async () => {
    const { store, path } = await openFile()
    expect(look(path)).toEqual({ jobs: 0, facts: 0 })
    await play(store)
    expect(look(path)).toEqual({ jobs: 0, facts: 0 })
    await store.close()
    const last = 'SELECT max(rid) FROM pawl_jobs'
    const vandalism = `DROP TRIGGER pawl_live_jobs_are_not_deleted;
      DROP TRIGGER pawl_ledger_is_never_deleted;
      DELETE FROM pawl_ledger WHERE job = (${last}); DELETE FROM pawl_jobs WHERE rid = (${last});`
    expect(look(path, vandalism)).toEqual({ jobs: 1, facts: 1 })
    expect(look(path, 'DELETE FROM pawl_ledger WHERE pos = 3')).toEqual({ jobs: 1, facts: 2 })
  })

  it('account for what the doctor has taken aside', async () => {
    const { store, path } = await openFile()
    await store.enqueue(items(2))
    await store.close()
    const aside = `DROP TRIGGER pawl_ledger_is_never_deleted;
      INSERT INTO pawl_quarantined (at, origin, content, why, operator, note)
      VALUES (1, 'pawl_ledger', '{}', 'orphan', 'ann', 'because');
      DELETE FROM pawl_ledger WHERE pos = 1`
    expect(look(path, aside)).toEqual({ jobs: 0, facts: 0 })
  })
})
