// Who is told of jobs that end or are parked, through the whole engine.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createPawl, defineJob, type Notice, Terminal } from 'pawl'
import { hardened } from 'pawl/rules'
import { describe, expect, it, onTestFinished } from 'vitest'
import { DefinitionInvalid } from '../../src/core/errors.ts'
import { freshStoreDatabase } from '../support/postgres/databases.ts'
import { EngineBench } from './bench.ts'

const done = defineJob({ name: 'done', notify: true, run: () => 'a secret' })
const broken = defineJob({
  name: 'broken',
  notify: true,
  lifecycle: hardened,
  run: () => {
    throw new Terminal('not today')
  },
})
const quiet = defineJob({ name: 'quiet', run: () => 1 })

describe('a function that is given to be notified', () => {
  it('is notified of every job that ends or is parked, if its type says so', async () => {
    const told: Notice[] = []
    const bench = await EngineBench.open([done, broken, quiet], undefined, {
      notify: (notice) => void told.push(notice),
    })
    await bench.work()
    const { pawl } = bench
    const ids = [
      (await pawl.enqueue(done, null, { key: 'k' })).id,
      (await pawl.enqueue(broken, null)).id,
    ]
    await pawl.enqueue(quiet, null)
    const cancelled = await pawl.enqueue(done, null, { delay: '1h' })
    await cancelled.cancel()
    await bench.until(() => told.length === 3)
    const byId = new Map(told.map((notice) => [notice.jobId, notice]))
    const seen = [...ids, cancelled.id].map((id) => {
      const { type, key, outcome, error } = byId.get(id) as Notice
      return { type, key, outcome, error }
    })
    expect(seen).toEqual([
      { type: 'done', key: 'k', outcome: 'succeeded', error: null },
      { type: 'broken', key: null, outcome: 'parked', error: 'Terminal: not today' },
      { type: 'done', key: null, outcome: 'cancelled', error: null },
    ])
    expect(JSON.stringify(told)).not.toContain('secret')
  })

  it('is told again, under the same key, until it has listened', async () => {
    const keys: string[] = []
    const bench = await EngineBench.open([done], undefined, {
      notify: (_, { key, tries }) => {
        keys.push(key)
        if (tries < 3) throw new Error('not now')
      },
    })
    await bench.work()
    const { id } = await bench.pawl.enqueue(done, null)
    await bench.until(() => keys.length === 3)
    expect(new Set(keys)).toEqual(new Set([`${id}/pawl.notify/3`]))
    await bench.pass(24 * 60 * 60 * 1000, 60_000)
    expect(keys).toHaveLength(3)
  })

  it('need not be in the process that ends the job', async () => {
    const told: string[] = []
    const bench = await EngineBench.open([done])
    await bench.work()
    const { id } = await bench.pawl.enqueue(done, null)
    await bench.until(async () => (await bench.state(id)) === 'succeeded')
    const { store, environment } = bench
    const notify = ({ jobId }: Notice) => void told.push(jobId)
    const other = await createPawl({ store, environment, jobs: [quiet], notify })
    onTestFinished(() => bench.finish(other.close()))
    await other.work()
    await bench.until(() => told.length === 1)
    expect(told).toEqual([id])
  })

  it('leaves names for its notices alone', () => {
    expect(() => defineJob({ name: 'pawl.notify' })).toThrow(DefinitionInvalid)
    const effects = { 'pawl.mail': () => {} }
    expect(() => defineJob({ name: 'mail', effects })).toThrow(DefinitionInvalid)
  })
})

it('a receiver is sent a signed request, on PostgreSQL and over a real network', async () => {
  const received: unknown[] = []
  const server = createServer((request, response) => {
    request.on('data', (chunk: Buffer) => received.push(JSON.parse(String(chunk))))
    request.on('end', () => response.end())
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  await using pawl = await createPawl({
    store: await freshStoreDatabase(),
    jobs: [done],
    notify: {
      url: `http://127.0.0.1:${port}/jobs`,
      secret: 'sixteen characters at least',
      allowPrivate: true,
    },
  })
  await pawl.work({ poll: '50ms' })
  const { id } = await pawl.enqueue(done, null)
  await expect.poll(() => received.length, { timeout: 10_000 }).toBe(1)
  expect(received).toMatchObject([{ jobId: id, type: 'done', outcome: 'succeeded' }])
})
