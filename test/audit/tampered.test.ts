// Whoever gets past the triggers with a shell is found out by seals, on both stores: facts and jobs
// that are gone, changed or made up, and seals that do not tell the truth.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type SealCopy, type SealFinding, sealUp, verifySeals } from 'pawl/audit'
import { standard } from 'pawl/rules'
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Held, Store } from '../../src/stores/contract/store.ts'
import { openPostgresStore } from '../../src/stores/postgres/open.ts'
import { loadDriver } from '../../src/stores/sqlite/driver.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { freshSchema, ownPostgres } from '../support/postgres/databases.ts'

/** A store, and a way past all of its guards; @ stands before the names of tables. */
interface Bench {
  readonly store: Store
  readonly vandalise: (sql: string) => Promise<void>
  /** The same with all guards in place. */
  readonly run: (sql: string) => Promise<void>
  /** The column of the order of the ledger, and the handle of a job in its tables. */
  readonly order: 'pos' | 'tx'
  readonly jobHandle: (id: string) => string
  /** Moves facts aside, as the doctor does. */
  readonly aside: (id: string, seq: number) => string
}

const COLUMNS = [
  ...['pos', 'job', 'seq', 'kind', 'version', 'at', 'path', 'actor', 'attempt', 'statuses'],
  ...['claim', 'worker', 'lease_until', 'data', 'payload'],
]

async function onSqlite(): Promise<Bench> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-tampered-'))
  const path = join(folder, 'jobs.db')
  const store = await openSqliteStore({ path })
  onTestFinished(async () => {
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const run = async (sql: string) => {
    const database = new (loadDriver().DatabaseSync)(path)
    try {
      database.exec(sql.replaceAll('@', 'pawl_'))
    } finally {
      database.close()
    }
  }
  return {
    store,
    run,
    async vandalise(sql) {
      const database = new (loadDriver().DatabaseSync)(path)
      const triggers = database
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
        .all() as { name: string; sql: string }[]
      for (const { name } of triggers) database.exec(`DROP TRIGGER ${name}`)
      database.exec(sql.replaceAll('@', 'pawl_'))
      for (const trigger of triggers) database.exec(trigger.sql)
      database.close()
    },
    order: 'pos',
    jobHandle: (id) => `(SELECT rid FROM @jobs WHERE id = '${id}')`,
    aside: (id, seq) => `
      INSERT INTO @quarantined (at, origin, job, content, why, operator, note)
      SELECT 1, 'pawl_ledger', '${id}', json_object(${COLUMNS.map((name) => `'${name}', ${name}`)}),
        'it contradicts', 'ann', 'because'
      FROM @ledger WHERE job = (SELECT rid FROM @jobs WHERE id = '${id}') AND seq = ${seq};
      DELETE FROM @ledger
      WHERE job = (SELECT rid FROM @jobs WHERE id = '${id}') AND seq = ${seq}`,
  }
}

const server = ownPostgres()

async function onPostgres(): Promise<Bench> {
  const url = server.url()
  const schema = freshSchema(url)
  const store = await openPostgresStore({ connectionString: url, schema, connections: 2 })
  onTestFinished(() => store.close())
  const run = async (sql: string) => {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    try {
      await client.query(sql.replaceAll('@', `${schema}.`))
    } finally {
      await client.end()
    }
  }
  return {
    store,
    run,
    vandalise: (sql) => run(`SET session_replication_role = replica; ${sql}`),
    order: 'tx',
    jobHandle: (id) => `'${id}'`,
    aside: (id, seq) => `
      INSERT INTO @quarantined (at, origin, job, content, why, operator, note)
      SELECT 1, 'ledger', job, row_to_json(gone)::text, 'it contradicts', 'ann', 'because'
      FROM @ledger AS gone WHERE job = '${id}' AND seq = ${seq};
      DELETE FROM @ledger WHERE job = '${id}' AND seq = ${seq}`,
  }
}

/** Three jobs that have ended, sealed in three parts; their ids. */
async function play({ store }: Bench): Promise<string[]> {
  const ids: string[] = []
  for (const n of [1, 2, 3]) {
    const jobId = `0198a1b2-0000-7000-8000-00000000000${n}`
    const command = { jobId, type: 'mail', queue: 'q' }
    await store.enqueue([{ lifecycle: standard, command, input: `{"n":${n}}` }])
    const claim = { worker: 'w', limit: 1, leaseMs: 30_000, start: true }
    const [held] = (await store.claim(claim)) as [Held]
    await store.commit(held, () => `"result ${n}"`)
    for await (const seal of sealUp(store)) expect(seal.facts).toBe(3)
    ids.push(jobId)
  }
  return ids
}

async function findingsOf(store: Store, copies?: readonly SealCopy[]): Promise<SealFinding[]> {
  const findings: SealFinding[] = []
  for await (const finding of verifySeals(store.seals, copies)) findings.push(finding)
  return findings
}

const kindsOf = (findings: readonly SealFinding[]) =>
  findings.map(({ kind, seal, facts }) => [kind, seal, ...(facts === undefined ? [] : [facts])])

/** What is done with a shell to the second of three jobs, and what is found of it. */
type Deed = readonly [
  what: string,
  sql: (job: string, order: string) => string,
  found: readonly unknown[],
]

const DEEDS: readonly Deed[] = [
  ['nothing', () => 'SELECT 1', []],
  [
    'a fact is deleted',
    (job) => `DELETE FROM @ledger WHERE job = ${job} AND seq = 2`,
    [['missing', 2, 1]],
  ],
  [
    'a job is deleted with its whole ledger',
    (job) => `DELETE FROM @ledger WHERE job = ${job};
      DELETE FROM @jobs WHERE id = '0198a1b2-0000-7000-8000-000000000002'`,
    [['missing', 2, 3]],
  ],
  [
    'who acted is changed',
    (job) => `UPDATE @ledger SET actor = 'engine' WHERE job = ${job} AND seq = 3`,
    [['changed', 2]],
  ],
  [
    'a result is changed',
    (job) => `UPDATE @ledger SET payload = '"other"' WHERE job = ${job} AND seq = 3`,
    [['changed', 2]],
  ],
  [
    'a time is changed',
    (job) => `UPDATE @ledger SET at = at + 1 WHERE job = ${job} AND seq = 1`,
    [['changed', 2]],
  ],
  [
    'a fact is made unreadable',
    (job) => `UPDATE @ledger SET kind = 99 WHERE job = ${job} AND seq = 2`,
    [['changed', 2]],
  ],
  [
    'a fact is made of no JSON',
    (job) => `UPDATE @ledger SET data = '{' WHERE job = ${job} AND seq = 1`,
    [['changed', 2]],
  ],
  [
    'a seal is changed to fit',
    (job) => `DELETE FROM @ledger WHERE job = ${job} AND seq = 2;
      UPDATE @seals SET facts = 2 WHERE number = 2`,
    [
      ['chain-broken', 2],
      ['changed', 2],
    ],
  ],
  ['a seal is deleted', () => 'DELETE FROM @seals WHERE number = 2', [['chain-broken', 3]]],
  [
    'a range is made longer',
    () => 'UPDATE @seals SET last = last + 1 WHERE number = 3',
    [['chain-broken', 3]],
  ],
  [
    'a removal is made up that no record of retention knows',
    (job) => `INSERT INTO @seal_removals (seal, pruned, facts, sum)
        SELECT 2, 77, 1, sum FROM @seals WHERE number = 1;
      DELETE FROM @ledger WHERE job = ${job} AND seq = 2`,
    [
      ['changed', 2],
      ['removal-doubtful', 2],
    ],
  ],
  [
    'a removal is made up that is no sum',
    (job) => `INSERT INTO @seal_removals (seal, pruned, facts, sum) VALUES (2, 77, 1, 'x');
      DELETE FROM @ledger WHERE job = ${job} AND seq = 2`,
    [
      ['changed', 2],
      ['removal-doubtful', 2],
    ],
  ],
]

describe.each([
  ['SQLite', onSqlite],
  ['PostgreSQL', onPostgres],
] as const)('seals on %s find it when', (_, open) => {
  it.each(DEEDS)('%s', async (_what, sql, found) => {
    const bench = await open()
    const [, second = ''] = await play(bench)
    await bench.vandalise(sql(bench.jobHandle(second), bench.order))
    const findings = await findingsOf(bench.store)
    expect(kindsOf(findings)).toEqual(found)
    for (const { message, seal } of findings) {
      if (seal !== undefined) expect(message).toContain(`seal ${seal}`.slice(1))
    }
  })

  it('a fact is put into a sealed range', async () => {
    const bench = await open()
    const { store, order } = bench
    const [, second = ''] = await play(bench)
    const job = bench.jobHandle(second)
    // On SQLite no place in a sealed range is free but one that was emptied.
    const columns = 'job, seq, kind, at, path, actor'
    if (order === 'tx') {
      await bench.vandalise(`INSERT INTO @ledger (tx, ${columns})
        SELECT tx, job, 4, 64, at, path, actor FROM @ledger WHERE job = ${job} AND seq = 3`)
      expect(kindsOf(await findingsOf(store))).toEqual([['added', 2, 1]])
    } else {
      await bench.vandalise(`CREATE TABLE was AS SELECT * FROM @ledger WHERE job = ${job};
        DELETE FROM @ledger WHERE job = ${job};
        INSERT INTO @ledger (pos, ${columns}) SELECT pos, job, seq + 7, kind, at, path, actor
        FROM was`)
      expect(kindsOf(await findingsOf(store))).toEqual([['changed', 2]])
    }
  })

  it('seals are made again for what is left, if there is a copy elsewhere', async () => {
    const bench = await open()
    const { store } = bench
    const [, second = ''] = await play(bench)
    const copies = await store.seals.list(0, 10)
    expect(await findingsOf(store, copies)).toEqual([])
    await bench.vandalise(`
      DELETE FROM @ledger WHERE job = ${bench.jobHandle(second)};
      DELETE FROM @jobs WHERE id = '${second}'; DELETE FROM @seals WHERE number >= 2`)
    for await (const seal of sealUp(store)) expect(seal.number).toBe(2)
    expect(await findingsOf(store)).toEqual([])
    const found = kindsOf(await findingsOf(store, copies))
    expect(found).toEqual([
      ['seal-changed', 2],
      ['missing', 2, 3],
      ['seal-missing', 3],
    ])
  })

  it('a copy was changed, and not the store', async () => {
    const bench = await open()
    const { store } = bench
    await play(bench)
    const copies = await store.seals.list(0, 10)
    const forged = copies.map((copy) => (copy.number === 2 ? { ...copy, facts: 2 } : copy))
    expect(kindsOf(await findingsOf(store, forged))).toEqual([
      ['chain-broken', 2],
      ['seal-changed', 2],
      ['added', 2, 1],
    ])
  })

  it('something else than the doctor took facts away', async () => {
    const bench = await open()
    const { store } = bench
    const [, second = '', third = ''] = await play(bench)
    await bench.vandalise(`${bench.aside(second, 3)}; ${bench.aside(second, 2)}`)
    expect(await findingsOf(store)).toEqual([])
    const job = bench.jobHandle(third)
    await bench.vandalise(`DELETE FROM @ledger WHERE job = ${job} AND seq = 2`)
    expect(kindsOf(await findingsOf(store))).toEqual([['missing', 3, 1]])
    await bench.vandalise(`UPDATE @quarantined SET content = '{' WHERE number = 1`)
    const kinds = kindsOf(await findingsOf(store))
    expect(kinds).toEqual([
      ['missing', 2, 2],
      ['missing', 3, 1],
    ])
  })

  it('what retention noted is taken away', async () => {
    const bench = await open()
    const { store } = bench
    await play(bench)
    expect(await store.prune({ endedBefore: store.now() + 1000, limit: 1 })).toBe(1)
    expect(await findingsOf(store)).toEqual([])
    await bench.vandalise('UPDATE @seal_removals SET facts = 2')
    expect(kindsOf(await findingsOf(store))).toEqual([
      ['missing', 1, 1],
      ['removal-doubtful', undefined],
    ])
    await bench.vandalise('DELETE FROM @seal_removals')
    expect(kindsOf(await findingsOf(store))).toEqual([['missing', 1, 3]])
  })

  it.each(['seals', 'seal_removals'])(
    'rows of %s are changed or deleted, and refuses',
    async (table) => {
      const bench = await open()
      const { store } = bench
      await play(bench)
      await store.prune({ endedBefore: store.now() + 1000, limit: 1 })
      for (const sql of [`UPDATE @${table} SET facts = 9`, `DELETE FROM @${table}`]) {
        await expect(bench.run(sql)).rejects.toThrow(/P8/)
      }
      expect(await findingsOf(store)).toEqual([])
    },
  )
})
