// Handlers that sleep and wait for signals, on both databases, under a time that the test owns.
import { defineJob, defineSignal, Suspended, typed, type WaitingContext } from 'pawl'
import { createTestPawl, runJob } from 'pawl/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { hardened } from '../../src/core/lifecycles/hardened.ts'
import { freshStoreDatabase } from '../support/postgres/databases.ts'

const STORES = [
  { name: 'SQLite', store: undefined },
  { name: 'PostgreSQL', store: freshStoreDatabase },
]

const approval = defineSignal({
  name: 'approval',
  payload: typed<{ approved: boolean; by: string }>(),
})
const ANN = { approved: true, by: 'ann' }

describe.each(STORES)('on $name', { timeout: 60_000 }, ({ store }) => {
  async function open(...jobs: readonly unknown[]) {
    const own = store === undefined ? {} : { store: await store() }
    const pawl = await createTestPawl({ jobs: jobs as never, ...own })
    onTestFinished(() => pawl.close())
    return pawl
  }

  it('a job sleeps without a slot, and goes on when its time has come', async () => {
    const seen: string[] = []
    const nap = defineJob({
      name: 'nap',
      run: async ({ sleep, step, attempt }) => {
        seen.push(`start ${attempt}`)
        try {
          await step('before', () => seen.push('before'))
          await sleep('rest', '7d')
        } finally {
          seen.push('finally')
        }
        return 'rested'
      },
    })
    const pawl = await open(nap)
    const handle = await pawl.pawl.enqueue(nap, null)
    await pawl.drain()
    expect(await handle.get()).toMatchObject({ state: 'waiting', reason: 'sleep', failures: 0 })
    await pawl.advance('6d')
    expect((await handle.get()).state).toBe('waiting')
    await pawl.advance('1d')
    await pawl.drain()
    expect(await handle.result()).toMatchObject({ kind: 'succeeded', output: 'rested' })
    expect(seen).toEqual(['start 1', 'before', 'finally', 'start 2', 'finally'])
    expect((await handle.get()).attempt).toBe(2)
  })

  const order = defineJob({
    name: 'order',
    signals: [approval],
    run: async ({ waitForSignal }) => {
      const answer = await waitForSignal(approval, { timeout: '7d' })
      return answer.kind === 'timeout' ? 'nobody answered' : answer.payload.by
    },
  })

  it('a signal wakes the job that waits for it', async () => {
    const pawl = await open(order)
    const handle = await pawl.pawl.enqueue(order, null)
    await pawl.drain()
    expect(await handle.get()).toMatchObject({ state: 'waiting', reason: 'signal:approval' })
    expect(await handle.signal(approval, ANN, { key: 'mail-1' })).toMatchObject({ kind: 'sent' })
    expect(await handle.signal(approval, ANN, { key: 'mail-1' })).toMatchObject({ kind: 'same' })
    await pawl.drain()
    expect(await handle.result()).toMatchObject({ kind: 'succeeded', output: 'ann' })
  })

  it('a signal that was sent before the first attempt is received without a wait', async () => {
    const pawl = await open(order)
    const handle = await pawl.pawl.enqueue(order, null)
    await handle.signal(approval, ANN)
    await pawl.drain()
    expect(await handle.result()).toMatchObject({ kind: 'succeeded', output: 'ann' })
    expect((await handle.get()).attempt).toBe(1)
  })

  it('without a signal the wait times out, and later signals are refused', async () => {
    const pawl = await open(order)
    const handle = await pawl.pawl.enqueue(order, null)
    await pawl.drain()
    await pawl.advance('7d')
    await pawl.drain()
    expect(await handle.result()).toMatchObject({ output: 'nobody answered' })
    await expect(handle.signal(approval, ANN)).rejects.toMatchObject({ code: 'E_JOB_ENDED' })
  })

  it('signals are received in order, each once, also after a failed attempt', async () => {
    const tick = defineSignal({ name: 'tick', payload: typed<number>() })
    let failures = 1
    const count = defineJob({
      name: 'count',
      signals: [tick],
      retry: { max: 2, delay: 0 },
      run: async ({ waitForSignal }) => {
        const got: number[] = []
        for (let i = 0; i < 3; i++) {
          const answer = await waitForSignal(tick)
          if (answer.kind === 'received') got.push(answer.payload)
          if (got.length === 2 && failures-- > 0) throw new Error('once')
        }
        return got
      },
    })
    const pawl = await open(count)
    const handle = await pawl.pawl.enqueue(count, null)
    for (const n of [1, 2, 3]) {
      await handle.signal(tick, n)
      await pawl.fastForward()
    }
    expect(await handle.result()).toMatchObject({ output: [1, 2, 3] })
    expect((await handle.get()).failures).toBe(1)
  })

  it('a handler that waits for other things parks its job, with both lists', async () => {
    let name = 'first'
    const changing = defineJob({
      name: 'changing',
      run: async ({ sleep }) => {
        await sleep(name, '1h')
      },
    })
    const pawl = await open(changing)
    const handle = await pawl.pawl.enqueue(changing, null)
    await pawl.drain()
    name = 'second'
    await pawl.advance('1h')
    await pawl.drain()
    const job = await handle.get()
    expect(job).toMatchObject({ state: 'quarantined', reason: 'replay_mismatch' })
    expect(job.error).toMatchObject({ code: 'E_REPLAY_MISMATCH' })
    expect(job.error?.message).toContain('sleep "first", and its handler now waits for sleep "sec')
  })

  it('a handler that no longer waits at all parks its job', async () => {
    let waits = true
    const hasty = defineJob({
      name: 'hasty',
      run: async ({ sleep }) => {
        if (waits) await sleep('rest', '1h')
      },
    })
    const pawl = await open(hasty)
    const handle = await pawl.pawl.enqueue(hasty, null)
    await pawl.drain()
    waits = false
    await pawl.advance('1h')
    await pawl.drain()
    expect(await handle.get()).toMatchObject({ state: 'quarantined', reason: 'replay_mismatch' })
  })

  it('a handler that catches Suspended changes nothing', async () => {
    const caught: unknown[] = []
    const stubborn = defineJob({
      name: 'stubborn',
      run: async ({ sleep, step, attempt }) => {
        try {
          await sleep('rest', '1h')
        } catch (error) {
          caught.push(error)
          await step('after', () => 1).catch((late) => caught.push(late))
          return 'too early'
        }
        return `after ${attempt}`
      },
    })
    const pawl = await open(stubborn)
    const handle = await pawl.pawl.enqueue(stubborn, null)
    await pawl.drain()
    expect(caught).toEqual([expect.any(Suspended), expect.any(Suspended)])
    expect((await handle.get()).state).toBe('waiting')
    await pawl.advance('1h')
    await pawl.drain()
    expect(await handle.result()).toMatchObject({ output: 'after 2' })
  })

  it('two waits at once are one after the other', async () => {
    const both = defineJob({
      name: 'both',
      run: async ({ sleep }) => {
        await Promise.all([sleep('a', '1h'), sleep('b', '1h')])
        return 'slept'
      },
    })
    const pawl = await open(both)
    const handle = await pawl.pawl.enqueue(both, null)
    await pawl.fastForward()
    expect(await handle.result()).toMatchObject({ output: 'slept' })
    const facts = await pawl.pawl.store.facts(handle.id)
    const waits = facts.filter(({ trigger }) => trigger === 'wait')
    expect(waits.map(({ wait }) => wait?.name)).toEqual(['a', 'b'])
    expect((waits[1]?.at ?? 0) - (waits[0]?.at ?? 0)).toBeGreaterThanOrEqual(3_600_000)
  })

  it('a waiting job is cancelled at once', async () => {
    const pawl = await open(order)
    const handle = await pawl.pawl.enqueue(order, null)
    await pawl.drain()
    await handle.cancel()
    expect(await handle.result()).toMatchObject({ kind: 'cancelled' })
  })

  it('a deadline ends a job that waits without a time-out', async () => {
    const patient = defineJob({
      name: 'patient',
      signals: [approval],
      run: async ({ waitForSignal }) => {
        await waitForSignal(approval)
      },
    })
    const pawl = await open(patient)
    const handle = await pawl.pawl.enqueue(patient, null, {
      deadline: new Date(pawl.pawl.store.now() + 86_400_000),
    })
    await pawl.drain()
    expect((await handle.get()).state).toBe('waiting')
    await pawl.advance('1d')
    await pawl.drain()
    expect(await handle.result()).toMatchObject({ kind: 'failed', error: { kind: 'deadline' } })
  })

  it('a lifecycle without a state for waiting refuses waits and signals', async () => {
    const rigid = defineJob({
      name: 'rigid',
      signals: [approval],
      lifecycle: hardened,
      run: async (context) => {
        // A program without types can call it.
        await (context as unknown as WaitingContext).sleep('rest', '1h')
      },
    })
    const pawl = await open(rigid)
    const handle = await pawl.pawl.enqueue(rigid, null)
    await expect(handle.signal(approval, ANN)).rejects.toMatchObject({ code: 'E_UNSUPPORTED' })
    await pawl.fastForward()
    expect((await handle.get()).error).toMatchObject({ code: 'E_UNSUPPORTED' })
  })
})

it('one attempt without a store says what it waits for, and receives what is given', async () => {
  const order = defineJob({
    name: 'order',
    signals: [approval],
    run: async ({ sleep, waitForSignal }) => {
      await sleep('cool-off', '3d')
      const answer = await waitForSignal(approval)
      return answer.kind === 'received' && answer.payload.by
    },
  })
  expect(await runJob(order, null)).toMatchObject({ kind: 'waiting', signal: 'approval' })
  const signals = [{ name: 'approval', payload: ANN }]
  expect(await runJob(order, null, { signals })).toMatchObject({ kind: 'succeeded', output: 'ann' })
})
