// Many jobs at once, on both stores: a list is enqueued as a whole or not at all, a stream in
// batches, and an interrupted call says how many it has enqueued.
import { CommandInvalid, createPawl, defineJob, EnqueueInterrupted, type Pawl, typed } from 'pawl'
import { describe, expect, it, onTestFinished } from 'vitest'
import { brokenPromises } from '../processes/inspect.ts'
import { PLACES } from './processes/places.ts'

const timeout = 60_000
const row = defineJob({ name: 'row', input: typed<{ n: number }>() })

async function* rows(from: number, to: number) {
  for (let n = from; n < to; n++) yield { input: { n } }
}

async function inputsOf(pawl: Pawl): Promise<number[]> {
  const found: number[] = []
  for await (const { id } of pawl.jobs.list({ type: 'row' }, { pageSize: 1000 })) {
    const texts = await pawl.store.payloads(id)
    found.push((JSON.parse(texts?.input ?? 'null') as { n: number }).n)
  }
  return found.reverse()
}

describe.each(PLACES)('on $name', ({ place }) => {
  it('a list is enqueued as a whole, or not at all', { timeout }, async () => {
    const { store } = await place()
    const enqueued: string[] = []
    const onEvent = (event: { type: string }) => void enqueued.push(event.type)
    const pawl = await createPawl({
      store,
      jobs: [row],
      onEvent,
      queues: { tight: { maxDepth: 2 } },
    })
    onTestFinished(() => pawl.close())
    await pawl.enqueue(row, { n: 0 }, { key: 'taken' })
    enqueued.length = 0
    const list = [
      { input: { n: 1 } },
      { input: { n: 2 }, key: 'taken', onConflict: 'reject' } as const,
      { input: { n: 3 } },
    ]
    await expect(pawl.enqueueMany(row, list)).rejects.toMatchObject({ code: 'E_KEY_TAKEN' })
    expect(enqueued).not.toContain('enqueued')
    const tight = defineJob({ name: 'row', queue: 'tight', input: typed<{ n: number }>() })
    const three = [4, 5, 6].map((n) => ({ input: { n } }))
    await expect(pawl.enqueueMany(tight, three)).rejects.toMatchObject({ code: 'E_QUEUE_FULL' })
    expect(await inputsOf(pawl)).toEqual([0])
    const handles = await pawl.enqueueMany(tight, three.slice(1))
    expect(handles.map(({ created }) => created)).toEqual([true, true])
    expect(await inputsOf(pawl)).toEqual([0, 5, 6])
    expect(await brokenPromises(pawl.store)).toEqual([])
  })

  it('a stream of 10,000 entries is enqueued in batches', { timeout }, async () => {
    const { pawl } = await place()
    const progress: number[] = []
    let read = 0
    let ahead = 0
    async function* watched() {
      for await (const entry of rows(0, 10_000)) {
        ahead = Math.max(ahead, ++read - (progress.at(-1) ?? 0))
        yield entry
      }
    }
    const onProgress = ({ count }: { count: number }) => void progress.push(count)
    const done = await pawl.enqueueMany(row, watched(), { batchSize: 2000, onProgress })
    expect(done).toEqual({ count: 10_000, created: 10_000 })
    expect(progress).toEqual([2000, 4000, 6000, 8000, 10_000])
    expect(ahead).toBe(2000)
    expect(await pawl.jobs.count({ queue: 'default' })).toBe(10_000)
  })

  it('an interrupted stream goes on from where it ended', { timeout }, async () => {
    const { pawl } = await place()
    async function* broken() {
      yield* rows(0, 7)
      throw new Error('the file ends here')
    }
    const failed = pawl.enqueueMany(row, broken(), { batchSize: 3 })
    await expect(failed).rejects.toMatchObject({
      code: 'E_ENQUEUE_INTERRUPTED',
      count: 7,
      details: { count: 7, created: 7, uncertain: 0 },
      cause: new Error('the file ends here'),
    })
    const done = await pawl.enqueueMany(row, rows(0, 10), { batchSize: 3, skip: 7 })
    expect(done).toEqual({ count: 10, created: 3 })

    const ending = new AbortController()
    const aborted = pawl.enqueueMany(row, rows(10, 20), {
      batchSize: 4,
      signal: ending.signal,
      onProgress: () => ending.abort(new Error('enough')),
    })
    await expect(aborted).rejects.toMatchObject({ count: 4, cause: new Error('enough') })

    // A batch with a rejected entry is not enqueued; those before it are.
    const keyed = [14, 15, 16, 16].map((n) => {
      return { input: { n }, key: `row ${n}`, onConflict: 'reject' } as const
    })
    const rejected = pawl.enqueueMany(row, keyed.values(), { batchSize: 2 })
    await expect(rejected).rejects.toMatchObject({ count: 2, cause: { code: 'E_KEY_TAKEN' } })
    expect(await inputsOf(pawl)).toEqual(Array.from({ length: 16 }, (_, n) => n))
    const again = keyed.slice(0, 3).map((entry) => ({ ...entry, onConflict: 'existing' }) as const)
    expect(await pawl.enqueueMany(row, again.values())).toEqual({ count: 3, created: 1 })
    expect(await brokenPromises(pawl.store)).toEqual([])
  })

  it('unknown options are refused', async () => {
    const { pawl } = await place()
    const wrong = [{ batch: 3 }, { batchSize: 0 }, { tx: {} }, { skip: -1 }]
    for (const options of wrong) {
      const call = pawl.enqueueMany(row, rows(0, 1), options as object)
      await expect(call).rejects.toBeInstanceOf(CommandInvalid)
    }
    const lost = pawl.enqueueMany(row, new Set([{ input: { n: 1 }, ky: 'a' }]))
    await expect(lost).rejects.toBeInstanceOf(EnqueueInterrupted)
  })
})
