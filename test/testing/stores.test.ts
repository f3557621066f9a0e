// The test kit on both databases: jobs, retries, effects and crashes under the test's own time, and
// why attempts failed. On PostgreSQL each kit has schemas of its own, which it removes.
import { CommandInvalid, defineJob, Terminal, typed } from 'pawl'
import { createTestPawl, DrainFailed } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { brokenPromises } from '../processes/inspect.ts'
import { connected } from '../support/postgres/clients.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres/databases.ts'

const timeout = 30_000
const STORES = [
  { name: 'SQLite in memory', place: async () => 'sqlite::memory:' },
  { name: 'PostgreSQL', place: () => freshDatabase(sharedPostgres()) },
]
const BANK = expect.stringContaining('the bank is closed')
const SCHEMAS = `SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pawl%'`

describe.each(STORES)('on $name', ({ name, place }) => {
  const mark = name === 'PostgreSQL' ? '$1' : '?'
  const delivered: string[] = []
  const thank = defineJob({
    name: 'thank',
    input: typed<{ order: string }>(),
    run: async () => 'ok',
  })
  const charge = defineJob({
    name: 'charge',
    input: typed<{ order: string }>(),
    retry: { max: 2, delay: '1h' },
    effects: { receipt: ({ key }) => delivered.push(key) },
    run: async ({ input, attempt, commit }) => {
      if (attempt === 1) throw new Error('the bank is closed')
      await commit(async (tx) => {
        await tx.query(`INSERT INTO charged VALUES (${mark})`, [input.order])
        await tx.enqueue(thank, input)
        tx.effect('receipt')
      })
    },
  })

  it('runs jobs when the test says so, and says why attempts failed', { timeout }, async () => {
    const store = await place()
    await using kit = await createTestPawl({ store, jobs: [charge, thank] })
    await kit.query('CREATE TABLE charged (name TEXT)')
    const { id } = await kit.pawl.enqueue(charge, { order: 'o-1' })
    const first = await kit.drain()
    expect(first).toMatchObject({
      waiting: [id],
      failures: [{ jobId: id, type: 'charge', attempt: 1, message: BANK }],
    })
    const stacks = first.failures.map(({ error }) => (error as Error).stack)
    expect(stacks).toEqual([expect.stringContaining('stores.test.ts')])
    expect((await kit.drain()).attempts).toEqual([])
    await kit.advance('3h')
    const second = await kit.drain()
    expect(second.succeeded).toHaveLength(2)
    expect(second.failures).toEqual([])
    expect(await kit.query('SELECT name FROM charged')).toEqual([{ name: 'o-1' }])
    expect(await kit.enqueued(thank)).toEqual([{ order: 'o-1' }])
    expect(delivered).toContain(`${id}/receipt/1`)
    expect(await brokenPromises(kit.store)).toEqual([])
  })

  it('a process dies at a crash point, and nothing is lost or doubled', { timeout }, async () => {
    const store = await place()
    await using kit = await createTestPawl({ store, jobs: [charge, thank] })
    await kit.query('CREATE TABLE charged (name TEXT)')
    await kit.pawl.enqueue(charge, { order: 'o-2' })
    await kit.drain()
    await kit.advance('3h')
    kit.crashAt('commit.committed')
    expect(await kit.drain()).toMatchObject({ crashed: 'commit.committed' })
    expect(await kit.query('SELECT name FROM charged')).toHaveLength(1)
    await kit.advance('5m')
    await kit.fastForward()
    expect(await kit.query('SELECT name FROM charged')).toEqual([{ name: 'o-2' }])
    expect(await kit.enqueued(thank)).toHaveLength(1)
    expect(await brokenPromises(kit.store)).toEqual([])
  })

  it('a drain throws the failures of its attempts if asked to', { timeout }, async () => {
    const broken = defineJob({
      name: 'broken',
      timeout: '1m',
      run: () => {
        throw new Terminal('no such address')
      },
    })
    const store = await place()
    await using kit = await createTestPawl({ store, jobs: [broken] })
    const { id } = await kit.pawl.enqueue(broken, null)
    const drained = kit.drain({ throwOnFailure: true })
    await expect(drained).rejects.toBeInstanceOf(DrainFailed)
    await expect(drained).rejects.toMatchObject({
      code: 'E_DRAIN_FAILED',
      message: expect.stringMatching(
        /broken .*, attempt 1: .*no such address[\s\S]*stores\.test\.ts/,
      ),
      failures: [{ jobId: id }],
      cause: new Terminal('no such address'),
    })
    expect(await kit.drain({ throwOnFailure: true })).toMatchObject({ failures: [] })
  })
})

it('kits on one PostgreSQL database do not meet, and leave nothing behind', async () => {
  const store = await freshDatabase(sharedPostgres())
  const job = defineJob({ name: 'a', run: async () => null })
  const kits = [
    await createTestPawl({ store, jobs: [job] }),
    await createTestPawl({ store, jobs: [job] }),
  ]
  await kits[0]?.query('CREATE TABLE jobs (name TEXT)')
  await kits[1]?.query('CREATE TABLE jobs (name TEXT)')
  await kits[0]?.pawl.enqueue(job, null)
  expect((await kits[1]?.drain())?.attempts).toEqual([])
  expect((await kits[0]?.drain())?.succeeded).toHaveLength(1)
  const client = await connected(store)
  expect((await client.query(SCHEMAS)).rows).toHaveLength(4)
  for (const kit of kits) await kit.close()
  expect((await client.query(SCHEMAS)).rows).toEqual([])
})

it('other stores are refused', async () => {
  const opening = createTestPawl({ store: 'sqlite:./jobs.db', jobs: [] })
  await expect(opening).rejects.toBeInstanceOf(CommandInvalid)
})
