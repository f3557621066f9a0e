// Lists and numbers of jobs, queues and workers through the library, on both stores.
import { CommandInvalid, createPawl, defineJob, type Job, Terminal, typed } from 'pawl'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { PLACES } from './processes/places.ts'

const WAIT = { timeout: 15_000, interval: 10 }
const timeout = 30_000
const mail = defineJob({
  name: 'mail',
  queue: 'letters',
  input: typed<{ n: number }>(),
  run: async ({ input }) => {
    if (input.n % 5 === 0) throw new Terminal('no such address')
  },
})
const other = defineJob({ name: 'other' })

describe.each(PLACES)('on $name', ({ place }) => {
  it('jobs are listed page by page, counted and found', { timeout }, async () => {
    const { store } = await place()
    const pawl = await createPawl({ store, jobs: [mail, other] })
    onTestFinished(() => pawl.close())
    const inputs = Array.from({ length: 23 }, (_, n) => ({ input: { n }, tags: [`t${n % 2}`] }))
    const handles = await pawl.enqueueMany(mail, inputs)
    await pawl.enqueue(other, null, { key: 'one' })
    const ids = handles.map(({ id }) => id).reverse()

    expect((await all(pawl.jobs.list({ type: 'mail' }))).map(idOf)).toEqual(ids)
    const some = pawl.jobs.list({ queue: 'letters' }, { limit: 7, pageSize: 3 })
    const pages = await all(some.pages())
    expect(pages.map(({ items }) => items.length)).toEqual([3, 3, 1])
    const rest = pawl.jobs.list({ queue: 'letters' }, { after: pages.at(-1)?.next as string })
    expect((await all(rest)).map(idOf)).toEqual(ids.slice(7))

    expect(await pawl.jobs.count()).toBe(24)
    expect(await pawl.jobs.count({ queue: 'letters' })).toBe(23)
    expect(await pawl.jobs.count({ queue: 'letters', lane: 'ready' })).toBe(23)
    expect(await pawl.jobs.count({ queue: 'nowhere' })).toBe(0)
    expect(await pawl.jobs.count({ tag: 't1' })).toBe(11)
    expect(await pawl.jobs.count({ tag: 't1' }, { limit: 4 })).toBe(4)
    expect(await pawl.jobs.get(ids[0] as string)).toMatchObject({ type: 'mail', state: 'queued' })
    expect(await pawl.jobs.get('0198a1b2-0000-7000-8000-000000000001')).toBeUndefined()

    const worker = await pawl.work({ jobs: [mail], queues: ['letters'] })
    await vi.waitFor(async () => expect(await pawl.jobs.count({ lane: 'ended' })).toBe(23), WAIT)
    expect(await pawl.jobs.count({ outcome: 'failed' })).toBe(5)
    expect(await pawl.jobs.count({ outcome: 'succeeded', type: 'mail' })).toBe(18)
    const isIn = ({ id }: { id: string }) => id === worker.id
    await vi.waitFor(async () => {
      const found = (await pawl.workers.list()).find(isIn)
      expect(found).toMatchObject({ live: true, queues: ['letters'], types: ['mail'] })
    }, WAIT)
    expect(await pawl.queues.list()).toMatchObject([
      { name: 'default', lanes: { ready: 1 }, workers: 0, oldestReadyMs: expect.any(Number) },
      { name: 'letters', lanes: { ended: 23 }, workers: 1 },
    ])
  })

  it('unknown filters and options are refused, and a signal ends a list', { timeout }, async () => {
    const { pawl } = await place()
    await pawl.enqueueMany(other, [{ input: 1 }, { input: 2 }])
    const refused = [
      () => pawl.jobs.list({ typ: 'mail' } as object),
      () => pawl.jobs.list({}, { size: 3 } as object),
      () => pawl.jobs.list({}, { pageSize: 0 }),
      () => pawl.jobs.list({ type: undefined } as object),
    ]
    for (const call of refused) expect(call).toThrow(CommandInvalid)
    await expect(pawl.jobs.count({ outcom: 'failed' } as object)).rejects.toThrow(CommandInvalid)
    const list = pawl.jobs.list({}, { after: 'nowhere' })
    await expect(all(list)).rejects.toMatchObject({ code: 'E_VALUE_INVALID' })
    const ending = new AbortController()
    const seen: Job[] = []
    const reading = (async () => {
      for await (const job of pawl.jobs.list({}, { pageSize: 1, signal: ending.signal })) {
        seen.push(job)
        ending.abort(new Error('enough'))
      }
    })()
    await expect(reading).rejects.toThrow('enough')
    expect(seen).toHaveLength(1)
  })
})

const idOf = ({ id }: Job) => id

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}
