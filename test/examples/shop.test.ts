// The shop of the examples, on both databases: its web process and its worker as people start them,
// and its jobs in the test kit.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createTestPawl } from 'pawl/testing'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { handlersOf } from '../../examples/shop/handlers.ts'
import { createTables, findOrder, importStatus, placeOrder } from '../../examples/shop/shop.ts'
import { PLACES } from '../engine/processes/places.ts'
import { freshFolder } from '../processes/folder.ts'
import { brokenPromises } from '../processes/inspect.ts'
import { freshStoreDatabase } from '../support/postgres/databases.ts'

const WAIT = { timeout: 40_000, interval: 100 }
const timeout = 60_000
const PRODUCTS = 10_000
const lines = Array.from({ length: PRODUCTS }, (_, n) => `sku-${n},Product ${n}\n`).join('')

/** Starts a program of the shop; resolves with the first line that it prints. */
async function start(program: 'web' | 'worker', ...args: string[]) {
  const path = resolve(`.build/programs/examples/shop/${program}.js`)
  const child = spawn(process.execPath, [path, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit') as Promise<[number | null]>
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const [line] = (await Promise.race([once(child.stdout, 'data'), ended])) as [Buffer]
  const stop = async () => {
    child.kill('SIGTERM')
    return (await ended)[0]
  }
  return { said: JSON.parse(String(line)) as { listening?: { port: number } }, stop }
}

const linesOf = <T>(path: string) =>
  readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as T)

describe.each(PLACES)('the shop on $name', ({ place }) => {
  it('charges each order once, mails, renders and imports 10,000 rows', { timeout }, async () => {
    const { store, pawl } = await place()
    const folder = freshFolder()
    const web = await start('web', store, folder, '0')
    const worker = await start('worker', store, folder, '7')
    const base = `http://127.0.0.1:${web.said.listening?.port}`
    const post = async (path: string, body: string) =>
      (await (await fetch(`${base}${path}`, { method: 'POST', body })).json()) as { job: string }
    const get = async (path: string) => (await fetch(`${base}${path}`)).json() as Promise<object>

    const imported = await post('/imports', lines)
    const ids = Array.from({ length: 12 }, (_, n) => `o-${n}`)
    for (const id of [...ids, 'o-3']) {
      await post('/orders', JSON.stringify({ id, email: `${id}@example.org` }))
    }
    await vi.waitFor(async () => {
      for (const id of ids) {
        const file = join(folder, `${id}.svg`)
        expect(await get(`/orders/${id}`)).toMatchObject({ state: 'paid', file })
      }
      const status = await get(`/imports/${imported.job}`)
      expect(status).toEqual({ state: 'succeeded', read: PRODUCTS, written: PRODUCTS })
      expect(await pawl.jobs.count({ lane: 'ended' })).toBe(await pawl.jobs.count())
    }, WAIT)
    expect(await fetch(`${base}/orders/none`)).toMatchObject({ status: 404 })
    expect(await get('/queues')).toMatchObject({ queues: { length: 3 } })

    const charges = linesOf<{ order: string }>(join(folder, 'charges.ndjson'))
    expect(charges.map(({ order }) => order).sort()).toEqual([...ids].sort())
    const mails = linesOf<{ key: string }>(join(folder, 'mails.ndjson'))
    expect(new Set(mails.map(({ key }) => key)).size).toBe(ids.length)
    expect(readFileSync(join(folder, 'o-0.svg'), 'utf8')).toContain('<svg')
    expect(await worker.stop()).toBe(0)
    expect(await web.stop()).toBe(0)
    // One job for each order to charge and to render, the import, and its twenty parts.
    expect(await pawl.jobs.count()).toBe(12 * 2 + 1 + 20)
    expect(await brokenPromises(pawl.store)).toEqual([])
  })
})

describe.each([
  { name: 'SQLite in memory', place: async () => 'sqlite::memory:' },
  { name: 'PostgreSQL', place: () => freshStoreDatabase() },
])('the jobs of the shop on $name', ({ place }) => {
  it('are retried while the bank fails, and mail once', { timeout }, async () => {
    const folder = freshFolder()
    mkdirSync(folder, { recursive: true })
    const mails: string[] = []
    let calls = 0
    const jobs = handlersOf({
      folder,
      bank: {
        async charge(order) {
          if (++calls < 3) throw new Error('The bank does not answer')
          return order
        },
      },
      mail: { send: async (to) => void mails.push(to) },
    })
    await using kit = await createTestPawl({ store: await place(), jobs })
    await createTables(kit.pawl)
    await placeOrder(kit.pawl, 'o-1', 'ada@example.org')
    await placeOrder(kit.pawl, 'o-1', 'ada@example.org')
    const drained = await kit.fastForward()
    expect(drained.failures.map(({ attempt }) => attempt)).toEqual([1, 2])
    expect(drained.succeeded).toHaveLength(2)
    expect(mails).toEqual(['ada@example.org'])
    const order = await findOrder(kit.pawl, 'o-1')
    expect(order).toMatchObject({ state: 'paid', file: join(folder, 'o-1.svg') })
    expect(existsSync(join(folder, 'o-1.svg'))).toBe(true)
    expect(await importStatus(kit.pawl, '0198a1b2-0000-7000-8000-000000000001')).toBeUndefined()
  })
})
