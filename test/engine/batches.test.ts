// Batches on both databases, under a time that the test owns.
import { defineJob, Terminal, typed } from 'pawl'
import { createTestPawl, type TestPawl } from 'pawl/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { freshStoreDatabase } from '../support/postgres/databases.ts'

const STORES = [
  { name: 'SQLite', store: undefined },
  { name: 'PostgreSQL', store: freshStoreDatabase },
]
const ANN = { name: 'ann', reason: 'test' }

const failing = new Set<number>()
const ran: string[] = []
const member = defineJob({
  name: 'member',
  input: typed<number>(),
  run: ({ input }) => {
    ran.push(`member ${input}`)
    if (failing.has(input)) throw new Terminal('no')
    return input
  },
})
const callback = (name: string) =>
  defineJob({
    name,
    input: typed<{ month: string }>(),
    run: ({ input }) => {
      ran.push(name)
      return input.month
    },
  })
const publish = callback('publish')
const tidy = callback('tidy')
const alarm = callback('alarm')
const month = { month: '11' }

describe.each(STORES)('on $name', { timeout: 20_000 }, ({ store }) => {
  async function open(): Promise<TestPawl> {
    failing.clear()
    ran.length = 0
    const own = store === undefined ? {} : { store: await store() }
    const test = await createTestPawl({ jobs: [member, publish, tidy, alarm], ...own })
    onTestFinished(() => test.close())
    return test
  }
  const all = {
    onSuccess: [publish, month],
    onComplete: [tidy, month],
    onFailure: [alarm, month],
  } as const

  it('onSuccess and onComplete run once when all have succeeded; onFailure does not', async () => {
    const test = await open()
    const batch = await test.pawl.batch(member, [1, 2, 3], all)
    expect(await batch.progress()).toMatchObject({ members: 3, live: 3, succeeded: 0 })
    await test.drain()
    expect(ran.slice(0, 3).sort()).toEqual(['member 1', 'member 2', 'member 3'])
    expect(ran.slice(3).sort()).toEqual(['publish', 'tidy'])
    expect(await batch.callbacks.onSuccess?.result()).toMatchObject({ output: '11' })
    expect(await batch.callbacks.onFailure?.result()).toMatchObject({
      kind: 'cancelled',
      reason: 'not_needed',
    })
    expect(await batch.progress()).toMatchObject({ members: 3, succeeded: 3, live: 0 })
    expect(await batch.status()).toMatchObject({ kind: 'batch', state: 'done', open: false })
  })

  it('the first failure runs onFailure; onSuccess runs after a redrive, each once', async () => {
    const test = await open()
    failing.add(1)
    failing.add(2)
    const batch = await test.pawl.batch(member, [1, 2, 3], all)
    await test.drain()
    expect(ran.filter((name) => !name.startsWith('member')).sort()).toEqual(['alarm', 'tidy'])
    expect(await batch.progress()).toMatchObject({ members: 3, succeeded: 1, failed: 2 })
    failing.clear()
    expect(await test.pawl.flows.redrive(batch.id, ANN)).toMatchObject({ done: 2 })
    await test.drain()
    const made = ran.filter((name) => !name.startsWith('member')).sort()
    expect(made).toEqual(['alarm', 'publish', 'tidy'])
    expect(await batch.progress()).toMatchObject({ succeeded: 3, failed: 0 })
  })

  it('an empty batch is complete at once', async () => {
    const test = await open()
    const batch = await test.pawl.batch(member, [], all)
    await test.drain()
    expect(ran.sort()).toEqual(['publish', 'tidy'])
    expect(await batch.callbacks.onFailure?.get()).toMatchObject({ outcome: 'cancelled' })
    expect(await batch.progress()).toMatchObject({ members: 0, live: 0 })
  })

  it('an open batch takes members until it is closed', async () => {
    const test = await open()
    const batch = await test.pawl.batch(member, [1], { ...all, open: true, key: 'b-1' })
    await test.drain()
    expect(ran).toEqual(['member 1'])
    const [two] = await batch.add([2])
    const other = await test.pawl.flows.batch(member, batch.id)
    await other.add([3, 4])
    await test.drain()
    expect(await two?.result()).toMatchObject({ output: 2 })
    expect([...ran].sort()).toEqual(['member 1', 'member 2', 'member 3', 'member 4'])
    expect(await batch.close()).toMatchObject({ open: false, progress: { members: 4 } })
    await expect(batch.add([5])).rejects.toMatchObject({ code: 'E_BATCH_CLOSED' })
    await test.drain()
    expect(ran.slice(4).sort()).toEqual(['publish', 'tidy'])
    await batch.close()
    await test.drain()
    expect(ran).toHaveLength(6)
    const again = await test.pawl.batch(member, [9], { key: 'b-1' })
    expect([again.created, again.id]).toEqual([false, batch.id])
  })

  it('a batch without callbacks has its progress', async () => {
    const test = await open()
    const batch = await test.pawl.batch(member, [1, 2])
    failing.add(2)
    await test.drain()
    expect(await batch.progress()).toMatchObject({ members: 2, succeeded: 1, failed: 1 })
    expect(await test.pawl.flows.get(batch.id)).toMatchObject({ state: 'done' })
  })

  it('refuses callbacks and options that there are not', async () => {
    const { pawl } = await open()
    const late = defineJob({ name: 'late', after: { it: member } })
    // @ts-expect-error: it comes after others.
    await expect(pawl.batch(late, [1])).rejects.toMatchObject({ code: 'E_AFTER_MISSING' })
    // @ts-expect-error: an input is missing.
    await expect(pawl.batch(member, [1], { onSuccess: [publish] })).rejects.toThrow('onSuccess')
    // @ts-expect-error: an input of another type.
    const wrong = () => pawl.batch(member, [1], { onSuccess: [publish, { month: 11 }] })
    expect(wrong).toBeTypeOf('function')
    // @ts-expect-error: there is no such option.
    await expect(pawl.batch(member, [1], { onEnd: [publish, month] })).rejects.toThrow('onEnd')
    await expect(pawl.flows.batch(member, '0')).rejects.toThrow()
    expect(await pawl.jobs.count({})).toBe(0)
  })
})
