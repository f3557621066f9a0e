// R3 (worker loop) as it was meant: its worker on PostgreSQL, in real time.
import { createPawl, defineJob, type PawlEvent } from 'pawl'
import { task, viewOf } from 'pawl/rules'
import pg from 'pg'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Store } from '../../src/stores/contract/store.ts'
import { openPostgresStore } from '../../src/stores/postgres/open.ts'
import { freshStoreDatabase } from '../support/postgres/databases.ts'
import { wayOf } from './played-job.ts'

const WAIT = { timeout: 15_000, interval: 20 }
const REQUEST = { limit: 1, leaseMs: 30_000, start: true } as const
const plain = defineJob({ name: 'plain', lifecycle: task, run: ({ input }) => input })

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  return client
}

async function openStore(url: string): Promise<Store> {
  const store = await openPostgresStore({ connectionString: url, connections: 4 })
  onTestFinished(() => store.close())
  return store
}

async function openPawl(store: Store, jobs: Parameters<typeof createPawl>[0]['jobs'] = [plain]) {
  const pawl = await createPawl({ store, jobs })
  onTestFinished(() => pawl.close())
  return pawl
}

describe('the loop on PostgreSQL', () => {
  it('takes a task from pending to done along the documented states', async () => {
    const store = await openStore(await freshStoreDatabase())
    const pawl = await openPawl(store)
    const events: PawlEvent[] = []
    const handle = await pawl.enqueue(plain, { page: 1 })
    await pawl.work({ concurrency: 1, onEvent: (event) => void events.push(event) })
    expect(await handle.result({ timeout: '10s' })).toMatchObject({ output: { page: 1 } })
    const trace = () =>
      events.flatMap((one) => (one.type === 'state' ? [`${one.from} → ${one.to}`] : []))
    await vi.waitFor(() => expect(trace()).toContain('Idle → Connecting'), WAIT)
    expect(trace().slice(0, 10)).toEqual([
      'Startup → Connecting',
      'Connecting → Recovery',
      'Recovery → Polling',
      'Polling → Claiming',
      'Claiming → Processing',
      'Processing → ReportingSuccess',
      'ReportingSuccess → Polling',
      'Polling → Backoff',
      'Backoff → Idle',
      'Idle → Connecting',
    ])
    const facts = await store.facts(handle.id)
    expect(facts.slice(1).map(wayOf)).toEqual(['pending → running', 'running → done'])
  })

  it('ends a task that throws in error, and takes back one whose worker went silent', async () => {
    const job = defineJob({
      name: 'second try',
      lifecycle: task,
      run: ({ attempt }) => {
        throw new Error(`try ${attempt}`)
      },
    })
    const store = await openStore(await freshStoreDatabase())
    const pawl = await openPawl(store, [job])
    const handle = await pawl.enqueue(job, null)
    const [held] = await store.claim({ ...REQUEST, worker: 'silent', leaseMs: 1000 })
    await pawl.work()
    expect(await handle.result({ timeout: '10s' })).toMatchObject({ kind: 'failed' })
    const facts = await store.facts(handle.id)
    expect(facts.slice(1).map(wayOf)).toEqual([
      'pending → running',
      'running → pending',
      'pending → running',
      'running → error',
    ])
    const late = (facts[2]?.at ?? 0) - (held?.job.execution?.leaseUntil ?? 0)
    expect(late).toBeGreaterThanOrEqual(0)
    expect(late).toBeLessThanOrEqual(2000)
    const view = viewOf(task, await handle.get())
    expect(view).toMatchObject({ status: 'error', try_count: 2, error: 'Error: try 2' })
  })
})

describe('a claim on PostgreSQL', () => {
  it('is one statement that updates the row and returns it', async () => {
    const url = await freshStoreDatabase()
    const sent: string[] = []
    const pool = new pg.Pool({ connectionString: url, max: 1 })
    pool.on('connect', (client) => {
      const query = client.query.bind(client) as (asked: pg.QueryConfig) => Promise<unknown>
      Object.assign(client, {
        query: (asked: pg.QueryConfig) => {
          sent.push(asked.text)
          return query(asked)
        },
      })
    })
    const store = await openPostgresStore({ pool })
    onTestFinished(async () => {
      await store.close()
      await pool.end()
    })
    const pawl = await openPawl(store)
    const handle = await pawl.enqueue(plain, { page: 1 })
    const before = sent.length
    const [held] = await store.claim({ ...REQUEST, worker: 'one' })
    const onJobs = sent.slice(before).filter((text) => text.includes('.jobs'))
    expect(onJobs).toHaveLength(1)
    expect(onJobs[0]).toMatch(/FOR UPDATE SKIP LOCKED.*UPDATE "pawl"\.jobs SET.*RETURNING/s)
    expect(held).toMatchObject({ input: '{"page":1}', job: { state: 'running', attempt: 1 } })
    expect(held?.job).toEqual(await handle.get())
  })

  it('leaves a row alone that somebody has locked, and takes it afterwards', async () => {
    const url = await freshStoreDatabase()
    const [store, client] = [await openStore(url), await connected(url)]
    const pawl = await openPawl(store)
    const [first, second] = [await pawl.enqueue(plain, 1), await pawl.enqueue(plain, 2)]
    await client.query('BEGIN')
    await client.query('SELECT 1 FROM pawl.jobs WHERE id = $1 FOR UPDATE', [first.id])
    const request = { ...REQUEST, worker: 'one', limit: 10 }
    expect((await store.claim(request)).map(({ job }) => job.id)).toEqual([second.id])
    await client.query('ROLLBACK')
    expect((await store.claim(request)).map(({ job }) => job.id)).toEqual([first.id])
  })

  it('of several workers at the same moment gives each task to one of them', async () => {
    const url = await freshStoreDatabase()
    const stores = await Promise.all([1, 2, 3, 4].map(() => openStore(url)))
    const pawl = await openPawl(stores[0] as Store)
    const inputs = Array.from({ length: 200 }, (_, input) => ({ input }))
    const handles = await pawl.enqueueMany(plain, inputs)
    const claims = stores.flatMap((store, worker) =>
      Array.from({ length: 10 }, () => store.claim({ ...REQUEST, worker: `${worker}`, limit: 10 })),
    )
    const held = (await Promise.all(claims)).flat()
    expect(held.map(({ job }) => job.id).sort()).toEqual(handles.map(({ id }) => id).sort())
    for (const { job } of held) {
      const { lease_owner, try_count } = viewOf(task, await pawl.job(job.id).get())
      expect([lease_owner, try_count]).toEqual([job.execution?.worker, 1])
    }
  })
})
