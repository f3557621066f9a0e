// Too few connections, none at all, and many who want one: everybody gets a turn or a typed error,
// in bounded time.

import type { Held, Store } from 'pawl/postgres'
import type { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { checkStore } from '../../contract/store/check.ts'
import { connected } from '../../support/postgres/clients.ts'
import {
  accepted,
  hold,
  item,
  makeUserRows,
  open,
  ownDatabase,
  ownServer,
  proxyTo,
  request,
  success,
  userRows,
} from './bed.ts'

/** Whether more time was given than the tests need. */
const isLong = process.env.PAWL_TEST_SECONDS !== undefined
const UNAVAILABLE = { code: 'E_STORE_UNAVAILABLE' }

/** Commits all of these at once, each with a row of the user's own. */
function commitAll(store: Store, held: readonly Held[]) {
  return Promise.all(
    held.map((one) =>
      store.commit(one, async (tx) => {
        const [row] = await tx.query('SELECT 41 + 1 AS answer')
        await tx.query('INSERT INTO user_rows VALUES ($1)', [one.job.id])
        return JSON.stringify(row)
      }),
    ),
  )
}

async function claimMany(store: Store, count: number): Promise<Held[]> {
  await accepted(
    store,
    Array.from({ length: count }, () => item()),
  )
  return store.claim(request({ limit: count, leaseMs: 120_000 }))
}

/** How long it took until something has ended, in milliseconds. */
async function durationOf(act: Promise<unknown>): Promise<number> {
  const start = performance.now()
  await act
  return performance.now() - start
}

describe('a pool of few connections', () => {
  it('of 2, one of which listens, commits 50 jobs at once, with other verbs between', async () => {
    const url = await ownDatabase()
    const client = await connected(url)
    await makeUserRows(client)
    const store = await open(url, { connections: 2 })
    store.onWake(() => {})
    const held = await claimMany(store, 50)
    const others = held.map(async ({ job }) => {
      await accepted(store, [item({ queue: 'later' })])
      return store.get(job.id)
    })
    const answers = await commitAll(store, held)
    expect(answers.map(({ kind }) => kind)).toEqual(held.map(() => 'done'))
    await Promise.all(others)
    expect(await userRows(client)).toEqual(held.map(({ job }) => job.id).sort())
    await checkStore(store)
  })

  it('of 1 serves all verbs in turn, also while somebody waits to be woken', async () => {
    const url = await ownDatabase()
    await makeUserRows(await connected(url))
    const store = await open(url, { connections: 1, timeoutMs: 3000 })
    store.onWake(() => {})
    const answers = await commitAll(store, await claimMany(store, 5))
    expect(answers.map(({ kind }) => kind)).toEqual(Array(5).fill('done'))
  })
})

describe('a server whose connections are all taken', () => {
  const CONNECTIONS_MAX = 6

  /** A server without a free connection, which some hold, and a store that has none. */
  async function crowded(timeoutMs: number) {
    const server = await ownServer({
      max_connections: CONNECTIONS_MAX,
      superuser_reserved_connections: 0,
    })
    const { url } = server
    const store = await open(url, { timeoutMs })
    await accepted(store, [item()])
    const clients: Client[] = [await connected(url)]
    await endOthers(clients[0] as Client)
    while (clients.length < CONNECTIONS_MAX) clients.push(await connected(url))
    const free = async () => {
      await Promise.all(clients.map((client) => client.end()))
    }
    return { server, store, free }
  }

  /** Ends all other connections, and waits until they have gone. */
  async function endOthers(client: Client): Promise<void> {
    const others = `FROM pg_stat_activity WHERE backend_type = 'client backend'
      AND pid <> pg_backend_pid()`
    await client.query(`SELECT pg_terminate_backend(pid) ${others}`)
    await expect
      .poll(async () => (await client.query(`SELECT pid ${others}`)).rowCount, { timeout: 10_000 })
      .toBe(0)
  }

  it('makes verbs wait, which succeed when some are free', async () => {
    const { server, store, free } = await crowded(15_000)
    const verbs = Promise.all([
      store.claim(request()),
      accepted(store, [item()]),
      store.counts(),
      store.recover(10),
    ])
    await expect.poll(() => server.log, { timeout: 10_000 }).toContain('too many clients')
    await free()
    expect((await verbs)[0]).toHaveLength(1)
  })

  it('gives a typed error after the time-out, and nothing hangs', { timeout: 60_000 }, async () => {
    const { store, free } = await crowded(1000)
    const verbs = Array.from({ length: 10 }, () => store.claim(request()))
    const results = await Promise.allSettled([...verbs, store.enqueue([item()]), store.counts()])
    expect(results).toMatchObject(results.map(() => ({ status: 'rejected', reason: UNAVAILABLE })))
    await free()
    await expect.poll(() => store.claim(request()).catch(() => [])).toHaveLength(1)
  })
})

describe('a database that is away', () => {
  it('gives each of many callers a typed error soon after the time-out', async () => {
    const url = await ownDatabase()
    const proxy = await proxyTo(url)
    const store = await open(proxy.through(url), { timeoutMs: 1000 })
    proxy.refuse()
    const verbs = Array.from({ length: 20 }, () => store.claim(request()))
    const all = Promise.allSettled(verbs)
    expect(await durationOf(all)).toBeLessThan(10_000)
    expect(await all).toMatchObject(verbs.map(() => ({ status: 'rejected', reason: UNAVAILABLE })))
    proxy.resume()
    await accepted(store, [item()])
  })

  it('is found again within a second or so, by all who wait for it', async () => {
    const url = await ownDatabase()
    const proxy = await proxyTo(url)
    const store = await open(proxy.through(url), { timeoutMs: 30_000 })
    await accepted(store, [item()])
    proxy.refuse()
    const verbs = Promise.all(Array.from({ length: 10 }, () => store.list({})))
    // Long enough for the attempts to have become rare.
    const start = performance.now()
    const away = () => performance.now() - start
    await expect.poll(away, { timeout: 10_000 }).toBeGreaterThan(3500)
    proxy.resume()
    expect(await durationOf(verbs)).toBeLessThan(2000)
  })

  it.runIf(isLong)('that is silent gives typed errors, and loses nothing', async () => {
    const url = await ownDatabase()
    const proxy = await proxyTo(url)
    const store = await open(proxy.through(url), { timeoutMs: 500 })
    const held = await hold(store)
    proxy.stall()
    const verbs = [
      store.settle([success(held)]),
      store.enqueue([item()]),
      store.claim(request()),
      store.commit(held, () => '1'),
    ]
    const all = Promise.allSettled(verbs)
    expect(await durationOf(all)).toBeLessThan(15_000)
    expect(await all).toMatchObject(verbs.map(() => ({ status: 'rejected', reason: UNAVAILABLE })))
    proxy.resume()
    const { answers } = await store.settle([success(held)])
    expect(['done', 'same']).toContain(answers[0]?.kind)
    await checkStore(store)
  })
})

describe('connections that are half open', () => {
  /** A store with idle connections that fall silent, while new ones work. */
  async function halfOpen() {
    const url = await ownDatabase()
    const proxy = await proxyTo(url)
    const store = await open(proxy.through(url), { timeoutMs: 4000 })
    const held = await hold(store)
    await Promise.all(Array.from({ length: 4 }, () => store.list({})))
    proxy.silence()
    return { store, held, other: await open(url) }
  }

  it('cost every verb less than its time-out, and no verb an error', async () => {
    const { store, held, other } = await halfOpen()
    const verbs = Promise.all([
      accepted(store, [item()]),
      store.settle([success(held)]),
      store.counts(),
      store.recover(10),
    ])
    expect(await durationOf(verbs)).toBeLessThan(4000)
    await checkStore(other)
  })

  it('cost a verb no more than its time-out if new ones are silent as well', async () => {
    const url = await ownDatabase()
    const proxy = await proxyTo(url)
    const store = await open(proxy.through(url), { timeoutMs: 3000 })
    const held = await hold(store)
    proxy.stall()
    const verbs = [
      store.enqueue([item()]),
      store.settle([success(held)], request()),
      store.counts(),
      store.recover(10),
      store.claim(request()),
    ]
    // Two who come later do not wait for longer because others are before them.
    const later = [store.enqueue([item()]), store.enqueue([item()])]
    const all = Promise.allSettled([...verbs, ...later])
    expect(await durationOf(all)).toBeLessThan(3600)
    const reasons = await all
    expect(reasons).toMatchObject(reasons.map(() => ({ status: 'rejected', reason: UNAVAILABLE })))
    proxy.resume()
    await accepted(store, [item()])
  })
})

describe('the error of an outage', () => {
  it('names the address, the code and what to do', async () => {
    const connectionString = 'postgres://ada:s3cret@127.0.0.1:1/app'
    const error = await open(connectionString, { timeoutMs: 300 }).catch((thrown) => thrown)
    expect(error).toMatchObject({
      code: 'E_STORE_UNAVAILABLE',
      message: expect.stringContaining('ECONNREFUSED 127.0.0.1:1'),
      hint: expect.stringContaining('Nothing listens there'),
      details: { cause: 'ECONNREFUSED', outcome: 'none' },
    })
    expect(JSON.stringify([error.message, error.details])).not.toContain('s3cret')
  })

  it('says that the server has too many clients', async () => {
    const server = await ownServer({ max_connections: 4, superuser_reserved_connections: 0 })
    for (let i = 0; i < 4; i++) await connected(server.url)
    const error = await open(server.url, { timeoutMs: 500 }).catch((thrown) => thrown)
    expect(error).toMatchObject({
      code: 'E_STORE_UNAVAILABLE',
      message: expect.stringMatching(/127\.0\.0\.1:\d+: .*too many clients.*\(SQLSTATE 53300\)/),
      hint: expect.stringContaining('max_connections'),
      details: { cause: '53300' },
    })
  })
})

it('several who open a new schema at once all find it made', async () => {
  const url = await ownDatabase()
  for (const schema of ['one', 'two', 'three']) {
    const stores = await Promise.all(
      Array.from({ length: 6 }, () => open(url, { schema, connections: 1 })),
    )
    const ids = await Promise.all(stores.map((store) => accepted(store, [item()])))
    expect((await stores[0]?.counts())?.lanes.ready).toBe(ids.length)
  }
})
