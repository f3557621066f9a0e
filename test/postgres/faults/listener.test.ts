// The connection on which a store hears of others' writes: that it hears, that it heals, and that
// nothing which happens to it, or to any other connection, ends the process.
import { createServer } from 'node:net'
import { openPostgresStore, type Store } from 'pawl/postgres'
import type { Client } from 'pg'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type Environment, systemEnvironment } from '../../../src/environment/system.ts'
import { channelOf } from '../../../src/stores/postgres/listen.ts'
import { quoted } from '../../../src/stores/postgres/migrate.ts'
import { connected } from '../../support/postgres/clients.ts'
import { accepted, item, open, ownDatabase, proxyTo } from './bed.ts'

const { channel } = channelOf(quoted('pawl'))
const HOLDERS = `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock'
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
const BACK_STOP_MS = 1000
const BOUND = { timeout: 15_000 }

/** Timers run faster, and the hints of the back-stop, which would prove nothing, are off. */
function hurried(times = 1): Environment {
  const environment = systemEnvironment()
  const { timers } = environment
  return {
    ...environment,
    timers: {
      ...timers,
      after: (delayMs, callback) =>
        delayMs === BACK_STOP_MS
          ? { cancel: () => {} }
          : timers.after(Math.ceil(delayMs / times), callback),
    },
  }
}

/** The processes of the server that serve listeners. */
async function listeners(client: Client): Promise<number[]> {
  const { rows } = await client.query(HOLDERS)
  return rows.map(({ pid }) => pid)
}

/** Waits until one listener is there that was not before, and answers its process. */
function newListener(client: Client, before?: number): Promise<number> {
  return vi.waitFor(async () => {
    const [pid, ...others] = await listeners(client)
    if (pid === undefined || pid === before || others.length > 0) throw new Error('not yet')
    return pid
  }, BOUND)
}

/** Counts the hints that a store gives. */
function hintsOf(store: Store): { count: number } {
  const hints = { count: 0 }
  onTestFinished(
    store.onWake(() => {
      hints.count++
    }),
  )
  return hints
}

/** Another store's write is heard of; a hint may be missed, so it is made known again and again. */
async function expectHearing(hints: { count: number }, other: Store): Promise<void> {
  await vi.waitFor(async () => {
    const before = hints.count
    await accepted(other, [item()])
    await vi.waitFor(() => expect(hints.count).toBeGreaterThan(before), { timeout: 1000 })
  }, BOUND)
}

/** Whatever would have ended the process while something is done. */
async function uncaughtDuring(act: () => Promise<void>): Promise<unknown[]> {
  const others = process.listeners('uncaughtException')
  const uncaught: unknown[] = []
  process.removeAllListeners('uncaughtException')
  process.on('uncaughtException', (error) => uncaught.push(error))
  try {
    await act()
  } finally {
    process.removeAllListeners('uncaughtException')
    for (const listener of others) process.on('uncaughtException', listener)
  }
  return uncaught
}

describe('a store that listens', () => {
  it('is notified of the write of another, before the back-stop', async () => {
    const url = await ownDatabase()
    const client = await connected(url)
    const [store, other] = [await open(url, { environment: hurried() }), await open(url)]
    const hints = hintsOf(store)
    await newListener(client)
    const before = hints.count
    await accepted(other, [item()])
    await vi.waitFor(() => expect(hints.count).toBeGreaterThan(before), BOUND)
  })

  it('listens again, and is notified again, after its connection was terminated', async () => {
    const url = await ownDatabase()
    const client = await connected(url)
    const [store, other] = [await open(url, { environment: hurried() }), await open(url)]
    const hints = hintsOf(store)
    let pid = await newListener(client)
    for (let round = 0; round < 3; round++) {
      await client.query('SELECT pg_terminate_backend($1)', [pid])
      pid = await newListener(client, pid)
      await expectHearing(hints, other)
    }
  })

  it('finds out that its connection has gone silent, and makes another', async () => {
    const url = await ownDatabase()
    const client = await connected(url)
    const proxy = await proxyTo(url)
    const other = await open(url)
    const store = await open(proxy.through(url), { environment: hurried(20) })
    const hints = hintsOf(store)
    const silent = await newListener(client)
    // From its next test of itself on, nothing that the server says reaches it.
    await proxy.loseReply({ to: new RegExp(`NOTIFY ${channel}`), after: 'silence' })
    await newListener(client, silent)
    await expectHearing(hints, other)
  })

  it('survives an end of its connection at the very beginning', async () => {
    const url = await ownDatabase()
    const client = await connected(url)
    const proxy = await proxyTo(url)
    const other = await open(url)
    const store = await open(proxy.through(url), { environment: hurried() })
    proxy.cut()
    const uncaught = await uncaughtDuring(async () => {
      const lost = proxy.loseReply({ to: /pg_backend_pid/ })
      const hints = hintsOf(store)
      await lost
      await newListener(client)
      await expectHearing(hints, other)
    })
    expect(uncaught).toEqual([])
  })
})

it('a connection that ends in the moment of its greeting ends nothing else', async () => {
  const int = (n: number) => Buffer.from([0, 0, 0, n])
  const fields = Buffer.from('SFATAL\0C57P01\0Mgood bye\0\0')
  const greeting = [
    ...[Buffer.from('R'), int(8), int(0)],
    ...[Buffer.from('Z'), int(5), Buffer.from('I')],
    ...[Buffer.from('E'), int(4 + fields.length), fields],
  ]
  const server = createServer((socket) => {
    socket.on('error', () => {}).on('data', () => socket.end(Buffer.concat(greeting)))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  onTestFinished(() => void server.close())
  const { port } = server.address() as { port: number }
  const connectionString = `postgres://nobody@127.0.0.1:${port}/nothing`
  const uncaught = await uncaughtDuring(async () => {
    const opening = openPostgresStore({ connectionString, timeoutMs: 300 })
    await expect(opening).rejects.toMatchObject({ code: 'E_STORE_UNAVAILABLE' })
  })
  expect(uncaught).toEqual([])
})

it('nobody is notified while nobody says that it listens', async () => {
  const url = await ownDatabase()
  const store = await open(url, { config: { application_name: 'writer' } })
  const [ear, witness] = [await connected(url), await connected(url)]
  const heard: string[] = []
  ear.on('notification', (message) => heard.push(message.channel))
  await ear.query(`LISTEN ${channel}`)

  await accepted(store, [item()])
  await vi.waitFor(async () => expect(await hasAsked(witness)).toBe(true), BOUND)
  // What was sent before this answer would have arrived before it.
  await ear.query('SELECT 1')
  expect(heard).toEqual([])

  const { lock } = channelOf(quoted('pawl'))
  await witness.query(`SELECT pg_advisory_lock_shared(${0x7061776c}, ${lock})`)
  await accepted(store, [item()])
  await vi.waitFor(() => expect(heard).toEqual([channel]), BOUND)
})

/** Whether the writer has come to the end of asking if somebody listens. */
async function hasAsked(client: Client): Promise<boolean> {
  const { rowCount } = await client.query(
    `SELECT 1 FROM pg_stat_activity WHERE application_name = 'writer' AND state = 'idle'
    AND datname = current_database() AND query LIKE 'SELECT pg_notify%'`,
  )
  return (rowCount ?? 0) > 0
}
