// Hints of the store: they make an idle worker start at once, and cost little where they are many.
import { describe, expect, it, vi } from 'vitest'
import { defineJob } from '../../src/engine/define-job.ts'
import { Pace } from '../../src/engine/worker/pace.ts'
import type { Store } from '../../src/stores/contract/store.ts'
import { EngineBench } from './bench.ts'

const echo = defineJob({ name: 'echo', run: ({ input }) => input })
const CLIENT = { actor: 'client' } as const

/** A worker that is idle, and how often it looks for jobs. */
async function idleWorker(jobs = [echo]) {
  const looks: number[] = []
  const counting = (store: Store): Store =>
    new Proxy(store, {
      get(target, name: keyof Store) {
        const value = target[name] as unknown
        if (typeof value !== 'function') return value
        const verb = value.bind(target) as (...values: unknown[]) => unknown
        return (...values: unknown[]) => {
          if (name === 'claim' || name === 'settle') looks.push(target.now())
          return verb(...values)
        }
      },
    })
  const bench = await EngineBench.open(jobs, counting)
  const worker = await bench.work({ poll: '1m', recover: '1m' })
  await bench.until(() => worker.states[0] === 'Idle')
  await bench.pass(1000)
  const other = await bench.pawl.enqueue(echo, null, { hold: true })
  let priority = 0
  /** A commit of somebody else that makes nothing ready. */
  const commit = () =>
    bench.store.applyCommand([other.id], { kind: 'prioritise', priority: ++priority }, CLIENT)
  await bench.pass(1000)
  looks.length = 0
  return { bench, worker, looks, commit }
}

/** Lets happen what needs no time. */
async function turns(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise<void>((turn) => setImmediate(turn))
}

describe('an idle worker', () => {
  it('starts a new job in no time', async () => {
    const { bench } = await idleWorker()
    const at = bench.store.now()
    const job = await bench.pawl.enqueue(echo, 1)
    await turns()
    expect(await job.get()).toMatchObject({ state: 'succeeded', startedAt: at })
  })

  it('starts a new job in no time although somebody has just written something else', async () => {
    const { bench, commit } = await idleWorker()
    const at = bench.store.now()
    await commit()
    await turns()
    const job = await bench.pawl.enqueue(echo, 1)
    bench.environment.advance(1)
    await turns()
    expect((await job.get()).startedAt).toBeLessThanOrEqual(at + 1)
  })

  it('looks once in five milliseconds at most while others write all the time', async () => {
    const { bench, looks, commit } = await idleWorker()
    for (let ms = 0; ms < 1000; ms++) {
      await commit()
      bench.environment.advance(1)
      await turns()
    }
    expect(looks.length).toBeGreaterThan(100)
    expect(looks.length).toBeLessThanOrEqual(205)
  })

  it('starts a new job within five milliseconds while others write all the time', async () => {
    const { bench, commit } = await idleWorker()
    for (let ms = 0; ms < 103; ms++) {
      await commit()
      bench.environment.advance(1)
      await turns()
    }
    const at = bench.store.now()
    const job = await bench.pawl.enqueue(echo, 1)
    for (let ms = 0; ms < 5; ms++) {
      bench.environment.advance(1)
      await turns()
    }
    const { state, startedAt } = await job.get()
    expect(state).toBe('succeeded')
    expect(startedAt).toBeLessThanOrEqual(at + 5)
  })
})

describe('a worker without a free slot', () => {
  it('does not look at all, however much others write', async () => {
    let end: () => void = () => {}
    const slow = defineJob({
      name: 'slow',
      run: () =>
        new Promise<void>((resolve) => {
          end = resolve
        }),
    })
    const { bench, worker, looks, commit } = await idleWorker([echo, slow])
    await bench.pawl.enqueue(slow, null)
    await bench.until(() => worker.running === 1)
    const next = await bench.pawl.enqueue(echo, 1)
    looks.length = 0
    const defer = vi.spyOn(bench.environment.timers, 'defer')
    for (let i = 0; i < 100; i++) {
      await commit()
      bench.environment.advance(1)
      await turns()
    }
    expect(looks).toEqual([])
    // The store's own turns, one for each write, and none of the worker's.
    expect(defer.mock.calls.length).toBeLessThanOrEqual(100)
    end()
    await turns()
    expect(await next.get()).toMatchObject({ state: 'succeeded' })
  })
})

describe('the pace of looks', () => {
  it('grows with every look for nothing up to its bound, and ends with one that found', () => {
    const pace = new Pace(5)
    const delays = Array.from({ length: 5 }, () => {
      pace.looked(100, false)
      return pace.delay(100)
    })
    expect(delays).toEqual([1, 2, 4, 5, 5])
    expect(pace.delay(103)).toBe(2)
    expect(pace.delay(106)).toBe(0)
    pace.looked(106, true)
    expect(pace.delay(106)).toBe(0)
  })

  it('starts again after a quiet time', () => {
    const pace = new Pace(5)
    for (let i = 0; i < 5; i++) pace.looked(100, false)
    expect(pace.delay(150)).toBe(0)
    pace.looked(150, false)
    expect(pace.delay(150)).toBe(1)
  })
})
