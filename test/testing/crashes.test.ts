// Processes of a test that die at a named place: what they committed stays, the rest never was.
import { defineJob, typed } from 'pawl'
import type { Fact } from 'pawl/rules'
import { CRASH_POINTS, type CrashPoint, createTestPawl } from 'pawl/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { brokenPromises } from '../processes/inspect.ts'

const child = defineJob({ name: 'child', run: () => 'grown' })

/** A job that books a row in its commit, or only returns. */
async function opened() {
  let runs = 0
  const book = defineJob({
    name: 'book',
    input: typed<{ how: 'commit' | 'return' | 'enqueue' }>(),
    retry: { max: 0 },
    run: async ({ input, commit }) => {
      runs++
      if (input.how === 'return') return 'returned'
      if (input.how === 'enqueue') return (await test.pawl.enqueue(child, null, { key: 'one' })).id
      return commit(async (tx) => {
        await tx.query('INSERT INTO bookings VALUES (1)')
        return 'booked'
      })
    },
  })
  const test = await createTestPawl({ jobs: [book, child] })
  onTestFinished(async () => {
    expect(await brokenPromises(test.store)).toEqual([])
    await test.close()
  })
  await test.query('CREATE TABLE bookings (n INTEGER)')
  const bookings = async () => (await test.query('SELECT * FROM bookings')).length
  return { test, book, bookings, runs: () => runs }
}

const triggersOf = (facts: readonly Fact[]) => facts.map(({ trigger }) => trigger)

/** The points that a job with a commit passes, and what is left when its process dies there. */
const COMMITTING: readonly [CrashPoint, { runs: number; bookings: number; facts: string[] }][] = [
  ['claim.begun', { runs: 0, bookings: 0, facts: ['create'] }],
  ['claim.written', { runs: 0, bookings: 0, facts: ['create'] }],
  ['claim.committed', { runs: 0, bookings: 0, facts: ['create', 'claim'] }],
  ['commit.begun', { runs: 1, bookings: 0, facts: ['create', 'claim'] }],
  ['commit.written', { runs: 1, bookings: 0, facts: ['create', 'claim'] }],
  ['commit.committed', { runs: 1, bookings: 1, facts: ['create', 'claim', 'commit'] }],
]

/** The verbs that a worker calls here. */
const REACHED = [
  ...['enqueue', 'claim', 'settle', 'commit', 'promote', 'recover', 'shed', 'reportWorker'],
  'removeWorker',
]

describe('a process that dies', () => {
  it.each(COMMITTING)('at %s leaves what was committed, and others finish', async (point, left) => {
    const { test, book, bookings, runs } = await opened()
    const { id } = await test.pawl.enqueue(book, { how: 'commit' })
    test.crashAt(point)
    const drained = await test.drain()
    expect(drained.crashed).toBe(point)
    expect(runs()).toBe(left.runs)
    expect(await bookings()).toBe(left.bookings)
    expect(triggersOf(await test.store.facts(id))).toEqual(left.facts)

    // Nobody else takes the job while the lease of the dead process runs.
    if (left.facts.length === 2) expect((await test.drain()).attempts).toEqual([])
    await test.advance('30s')
    await test.fastForward()
    expect(await test.store.get(id)).toMatchObject({ outcome: 'succeeded' })
    expect(await bookings()).toBe(1)
  })

  it('before its report was written has its job run again, and after it not', async () => {
    for (const [point, runsAfter] of [
      ['settle.begun', 2],
      ['settle.written', 2],
      ['settle.committed', 1],
    ] as const) {
      const { test, book, runs } = await opened()
      const job = await test.pawl.enqueue(book, { how: 'return' })
      test.crashAt(point)
      expect(await test.drain()).toMatchObject({
        crashed: point,
        [runsAfter === 2 ? 'held' : 'succeeded']: [job.id],
      })
      await test.advance('30s')
      await test.fastForward()
      expect(await job.result()).toMatchObject({ output: 'returned' })
      expect(runs()).toBe(runsAfter)
    }
  })

  it('in an enqueue of its handler leaves one job with the key, whenever it died', async () => {
    for (const point of ['enqueue.begun', 'enqueue.written', 'enqueue.committed'] as const) {
      const { test, book } = await opened()
      const job = await test.pawl.enqueue(book, { how: 'enqueue' })
      test.crashAt(point)
      expect((await test.drain()).crashed).toBe(point)
      await test.advance('30s')
      await test.fastForward()
      const [first, ...others] = (await test.store.list({ type: 'child' })).items
      expect(others).toEqual([])
      expect(await job.result()).toMatchObject({ output: first?.id })
    }
  })

  it('by the hand of its handler does nothing after that', async () => {
    const after: string[] = []
    const job = defineJob({
      name: 'job',
      run: async ({ attempt, commit }) => {
        if (attempt > 1) return attempt
        await commit(async (tx) => {
          await tx.query('INSERT INTO bookings VALUES (1)')
          await test.crash()
          after.push('in the commit')
        })
        after.push('after the commit')
        return attempt
      },
    })
    const test = await createTestPawl({ jobs: [job] })
    onTestFinished(() => test.close())
    await test.query('CREATE TABLE bookings (n INTEGER)')
    const handle = await test.pawl.enqueue(job, null)
    expect(await test.drain()).toMatchObject({ crashed: 'handler', held: [handle.id] })
    await test.advance('30s')
    await test.fastForward()
    expect(await handle.result()).toMatchObject({ output: 2, job: { crashes: 1 } })
    expect(await test.query('SELECT * FROM bookings')).toEqual([])
    expect(after).toEqual([])
  })

  it('takes its neighbours in the same transaction along', async () => {
    const { test, book } = await opened()
    const inputs = Array.from({ length: 5 }, () => ({ input: { how: 'return' } as const }))
    const handles = await test.pawl.enqueueMany(book, inputs)
    test.crashAt('settle.written')
    const { held } = await test.drain({ concurrency: 5 })
    expect(held).toEqual(handles.map(({ id }) => id))
    await test.advance('30s')
    expect((await test.fastForward({ concurrency: 5 })).succeeded).toHaveLength(5)
  })
})

it('writes that share a transaction with the fatal one share its fate', async () => {
  for (const [point, children] of [
    ['enqueue.begun', 0],
    ['enqueue.written', 0],
    ['enqueue.committed', 2],
  ] as const) {
    const parent = defineJob({
      name: 'parent',
      run: async ({ jobId }) => {
        await test.pawl.enqueue(child, jobId, { key: jobId })
      },
    })
    const test = await createTestPawl({ jobs: [parent] })
    onTestFinished(() => test.close())
    await test.pawl.enqueueMany(parent, [{ input: null }, { input: null }])
    test.crashAt(point)
    expect((await test.drain({ concurrency: 2 })).held).toHaveLength(2)
    expect(await test.enqueued(child)).toHaveLength(children)
  }
})

describe('a crash point', () => {
  it.each(CRASH_POINTS)('%s keeps no drain from ending, and no job', async (point) => {
    const { test, book, bookings } = await opened()
    const [job] = await test.pawl.enqueueMany(book, [
      { input: { how: 'commit' } },
      { input: { how: 'enqueue' } },
      { input: { how: 'return' }, delay: '10s' },
    ])
    await test.pawl.enqueue(child, null, { delay: '1s' })
    test.environment.advance(20_000)
    test.crashAt(point)
    const { crashed } = await test.drain()
    expect(crashed).toBe(REACHED.includes(point.split('.')[0] ?? '') ? point : undefined)
    await test.advance('30s')
    await test.fastForward()
    expect(await job?.result()).toMatchObject({ kind: 'succeeded' })
    expect(await bookings()).toBe(1)
    const { lanes } = await test.store.counts()
    expect(lanes).toMatchObject({ ended: 5, held: 0, ready: 0, waiting: 0 })
  })

  it('that is not reached crashes nothing, also not a later drain', async () => {
    const { test, book } = await opened()
    test.crashAt('commit.written')
    const first = await test.pawl.enqueue(book, { how: 'return' })
    expect(await test.drain()).toMatchObject({ succeeded: [first.id] })
    const second = await test.pawl.enqueue(book, { how: 'commit' })
    const drained = await test.drain()
    expect(drained).toMatchObject({ succeeded: [second.id] })
    expect(drained).not.toHaveProperty('crashed')
  })

  it('does not hit the test itself', async () => {
    const { test, book } = await opened()
    test.crashAt('enqueue.begun')
    await test.pawl.enqueue(book, { how: 'return' })
    expect(await test.enqueued(book)).toHaveLength(1)
  })

  it('that does not exist is refused, and a crash needs a process', async () => {
    const { test } = await opened()
    expect(() => test.crashAt('commit.maybe' as CrashPoint)).toThrow('commit.written')
    expect(() => test.crash()).toThrow('drain')
    expect(new Set(CRASH_POINTS).size).toBe(CRASH_POINTS.length)
  })

  it('ends a way through due times where it is reached', async () => {
    const { test, book } = await opened()
    const { id } = await test.pawl.enqueue(book, { how: 'commit' })
    test.crashAt('commit.written')
    expect(await test.fastForward()).toMatchObject({ crashed: 'commit.written', held: [id] })
  })
})
