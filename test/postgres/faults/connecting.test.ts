// A database that is not there when a process starts, or goes away under its workers: it is waited
// for where that was asked for, visibly, and what cannot pass by itself fails at once.
import { createPawl, defineJob, type PawlEvent } from 'pawl'
import type { MetricName } from 'pawl/telemetry'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { connected } from '../../support/postgres/clients.ts'
import { ownDatabase, ownServer, proxyTo } from './bed.ts'

const LONG = { timeout: 60_000 }
const SOON = { timeout: 20_000, interval: 20 }
const echo = defineJob({ name: 'echo', run: ({ input }) => input })

type Connection = Extract<PawlEvent, { type: 'connection' }>

describe("createPawl({ connect: 'wait' })", () => {
  it('goes on when its database comes, and says meanwhile what it waits for', LONG, async () => {
    const server = await ownServer()
    await server.kill9()
    const events: PawlEvent[] = []
    const lines: string[] = []
    const log = (_: object, line: string) => void lines.push(line)
    const opening = createPawl({
      store: server.url,
      jobs: [echo],
      connect: 'wait',
      storeTimeout: '2s',
      onEvent: (event) => events.push(event),
      logger: { debug() {}, info: log, warn: log, error: log },
    })
    const of = () => events.filter((event): event is Connection => event.type === 'connection')
    await vi.waitFor(() => expect(of().map(({ state }) => state)).toContain('ErrorWait'), SOON)
    await server.restart()
    const pawl = await opening
    onTestFinished(() => pawl.close())
    const states = of().map(({ state }) => state)
    expect(states[0]).toBe('Connecting')
    expect(states.slice(-3)).toEqual(['ErrorWait', 'Connecting', 'Connected'])
    const away = of().find(({ state }) => state === 'ErrorWait')
    expect(away?.error).toMatchObject({
      code: 'E_STORE_UNAVAILABLE',
      message: expect.stringContaining(`ECONNREFUSED 127.0.0.1:${server.port}`),
    })
    expect(lines.join('\n')).toContain('Waiting for the store: ')
    await pawl.work()
    const handle = await pawl.enqueue(echo, 'at last')
    expect(await handle.result({ timeout: '20s' })).toMatchObject({ output: 'at last' })
  })

  it('ends with its signal', async () => {
    const stop = new AbortController()
    const events: PawlEvent[] = []
    const opening = createPawl({
      store: 'postgres://127.0.0.1:1/none',
      connect: 'wait',
      signal: stop.signal,
      onEvent: (event) => events.push(event),
    })
    opening.catch(() => {})
    await vi.waitFor(() => expect(events).not.toEqual([]), SOON)
    stop.abort()
    await expect(opening).rejects.toMatchObject({ code: 'E_CONNECT_ABORTED' })
  })

  it('does not wait for what cannot pass by itself', async () => {
    const url = await ownDatabase()
    const missing = Object.assign(new URL(url), { pathname: '/no_such_database' }).href
    const start = performance.now()
    const cases = [
      [missing, 'E_STORE_FAILED'],
      ['sqlite:/nowhere/at/all/jobs.db', 'E_STORE_UNUSABLE'],
      [`${url}?target_session_attrs=standby`, 'E_STORE_UNUSABLE'],
    ] as const
    for (const [store, code] of cases) {
      await expect(createPawl({ store, connect: 'wait' })).rejects.toMatchObject({ code })
    }
    expect(performance.now() - start).toBeLessThan(5000)
  })

  it('is one of two ways, and another is refused', async () => {
    const connect = 'whenever' as 'wait'
    const opening = createPawl({ store: 'sqlite::memory:', connect })
    await expect(opening).rejects.toMatchObject({ code: 'E_COMMAND_INVALID' })
  })
})

it(
  'a worker says that its database is away, and counts it, long before it gives up',
  LONG,
  async () => {
    const url = await ownDatabase()
    const proxy = await proxyTo(url)
    const errors: Extract<PawlEvent, { type: 'error' }>[] = []
    const counted: [MetricName, object][] = []
    const pawl = await createPawl({
      store: proxy.through(url),
      jobs: [echo],
      metrics: { count: (...one) => counted.push([one[0], one[1]]), observe() {}, gauge() {} },
    })
    onTestFinished(() => pawl.close())
    const worker = await pawl.work({
      onEvent: (event) => {
        if (event.type === 'error') errors.push(event)
      },
    })
    await vi.waitFor(() => expect(worker.states[0]).toBe('Idle'), SOON)
    const start = performance.now()
    proxy.refuse()
    await vi.waitFor(() => expect(errors).toHaveLength(1), SOON)
    expect(performance.now() - start).toBeLessThan(6000)
    await vi.waitFor(() => expect(errors.length).toBeGreaterThan(1), SOON)
    expect(errors[0]).toMatchObject({
      worker: worker.id,
      error: { code: 'E_STORE_UNAVAILABLE', message: expect.stringContaining('ECONN') },
    })
    const labels = { worker: worker.id, code: 'E_STORE_UNAVAILABLE' }
    expect(counted).toContainEqual(['pawl_worker_errors_total', labels])
    proxy.resume()
    const handle = await pawl.enqueue(echo, 'back')
    expect(await handle.result({ timeout: '20s' })).toMatchObject({ output: 'back' })
    // Bounded: an error every few seconds, however often the store was asked.
    const seconds = (performance.now() - start) / 1000
    expect(errors.length).toBeLessThan(2 + seconds / 2)
  },
)

it('a session that is ended once is not reported as trouble', async () => {
  const url = await ownDatabase()
  const events: PawlEvent[] = []
  const pawl = await createPawl({ store: url, jobs: [echo], onEvent: (one) => events.push(one) })
  onTestFinished(() => pawl.close())
  await pawl.work()
  const client = await connected(url)
  await client.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()`)
  const handle = await pawl.enqueue(echo, 1)
  await handle.result({ timeout: '20s' })
  expect(events.filter(({ type }) => type === 'error')).toEqual([])
})
