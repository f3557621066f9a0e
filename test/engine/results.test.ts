// Waiting for jobs that somebody else works on: how soon it is told, and what it costs the store.
import { describe, expect, it } from 'vitest'
import { defineJob } from '../../src/engine/define-job.ts'
import { ResultTimeout } from '../../src/engine/errors.ts'
import type { Held, Store } from '../../src/stores/contract/store.ts'
import { EngineBench } from './bench.ts'

const job = defineJob({ name: 'elsewhere' })

/** A client alone; the test does the work of a worker elsewhere, and counts the client's looks. */
async function client({ hasHints = true } = {}) {
  const looks: number[] = []
  const listening = { count: 0 }
  const bench = await EngineBench.open(
    [job],
    (store) =>
      new Proxy(store, {
        get(target, name: keyof Store) {
          if (name === 'onWake' && !hasHints) return () => () => {}
          const value = target[name] as unknown
          if (typeof value !== 'function') return value
          const verb = value.bind(target) as (...values: unknown[]) => unknown
          if (name === 'onWake') return countedHints(target, listening)
          return (...values: unknown[]) => {
            if (name === 'getMany') looks.push((values[0] as unknown[]).length)
            if (name === 'get') looks.push(1)
            return verb(...values)
          }
        },
      }),
  )
  const enqueue = (count: number) =>
    bench.pawl.enqueueMany(
      job,
      Array.from({ length: count }, (_, input) => ({ input })),
    )
  const claim = (limit: number) =>
    bench.store.claim({ worker: 'elsewhere', limit, leaseMs: 600_000, start: true })
  const commit = (held: readonly Held[]) =>
    bench.store.settle(
      held.map((one) => {
        const fence = { attempt: 1, claim: one.job.execution?.claim ?? '' }
        return { held: one, command: { kind: 'commit', fence } as const, payload: one.input }
      }),
    )
  return { bench, looks, listening, enqueue, claim, commit }
}

/** Hints that know how many listen to them. */
function countedHints(store: Store, listening: { count: number }): Store['onWake'] {
  return (listener) => {
    listening.count++
    const unsubscribe = store.onWake(listener)
    return () => {
      listening.count--
      unsubscribe()
    }
  }
}

/** Lets happen what needs no time. */
async function turns(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise<void>((turn) => setImmediate(turn))
}

describe('a caller that waits for a result', () => {
  it('of a job that has ended already is answered at once', async () => {
    const { bench, enqueue, claim, commit } = await client()
    const [handle] = await enqueue(1)
    await commit(await claim(1))
    let outcome: unknown
    void handle?.result().then((result) => {
      outcome = result
    })
    await turns()
    expect(outcome).toMatchObject({ kind: 'succeeded', output: 0 })
    expect(bench.environment.clock.now()).toBe(bench.store.now())
  })

  it('is told by a hint of the store, in no time', async () => {
    const { bench, enqueue, claim, commit } = await client()
    const [handle] = await enqueue(1)
    const held = await claim(1)
    let outcome: unknown
    void handle?.result().then((result) => {
      outcome = result
    })
    await bench.pass(60_000, 100)
    expect(outcome).toBeUndefined()
    await commit(held)
    await turns()
    expect(outcome).toMatchObject({ kind: 'succeeded' })
  })

  it('is told within half a second where there are no hints', async () => {
    const { bench, looks, enqueue, claim, commit } = await client({ hasHints: false })
    const [handle] = await enqueue(1)
    const held = await claim(1)
    const result = handle?.result()
    await bench.pass(60_000, 100)
    expect(looks.length).toBeLessThanOrEqual(130)
    await commit(held)
    const from = bench.store.now()
    await bench.finish(result ?? Promise.reject())
    expect(bench.store.now() - from).toBeLessThanOrEqual(500)
  })

  it('is one of a thousand who together cost two looks', async () => {
    const { bench, looks, enqueue, claim, commit } = await client()
    const handles = await enqueue(1000)
    const held = await claim(1000)
    const results = Promise.all(handles.map((handle) => handle.result()))
    await turns()
    expect(looks).toEqual([500, 500])
    looks.length = 0
    await commit(held)
    expect(await bench.finish(results)).toHaveLength(1000)
    expect(looks).toEqual([500, 500])
  })

  it('does not ask with every hint where others are busy', async () => {
    const { bench, looks, enqueue, claim, commit } = await client()
    const [mine] = await enqueue(1)
    const held = await claim(1)
    const result = mine?.result()
    await turns()
    looks.length = 0
    for (let i = 0; i < 500; i++) {
      await bench.store.applyCommand([mine?.id ?? ''], { kind: 'prioritise', priority: i }, CLIENT)
      bench.environment.advance(2)
      await turns()
    }
    expect(looks.length).toBeGreaterThan(10)
    expect(looks.length).toBeLessThanOrEqual(40)
    await commit(held)
    await bench.finish(result ?? Promise.reject())
  })

  it('leaves a slow store alone for ten times as long as a look took', async () => {
    const asked: number[] = []
    const bench = await EngineBench.open(
      [job],
      (store) =>
        new Proxy(store, {
          get(target, name: keyof Store) {
            const value = target[name] as unknown
            if (typeof value !== 'function') return value
            if (name !== 'getMany') return value.bind(target)
            return async () => {
              asked.push(target.now())
              await new Promise<void>((done) => bench.environment.timers.after(200, done))
              return []
            }
          },
        }),
    )
    const handle = await bench.pawl.enqueue(job, null)
    const result = handle.result({ timeout: '20s' }).catch((error: unknown) => error)
    for (let i = 0; i < 40; i++) {
      await bench.pawl.enqueue(job, null)
      await bench.pass(300, 10)
    }
    expect(await bench.finish(result)).toBeInstanceOf(ResultTimeout)
    const distances = asked.slice(1).map((at, i) => at - (asked[i] as number))
    expect(distances.length).toBeGreaterThan(3)
    expect(Math.min(...distances)).toBeGreaterThanOrEqual(2000)
  })

  it('and has given up costs nothing any more', async () => {
    const { bench, looks, listening, enqueue } = await client()
    const [handle] = await enqueue(1)
    await expect(
      bench.finish(handle?.result({ timeout: '1s' }) ?? Promise.reject()),
    ).rejects.toThrow(ResultTimeout)
    expect(listening.count).toBe(0)
    looks.length = 0
    await enqueue(5)
    await bench.pass(10_000, 100)
    expect(looks).toEqual([])
  })
})

const CLIENT = { actor: 'client' } as const

describe('Pawl after close', () => {
  it('starts no worker', async () => {
    const bench = await EngineBench.open([job])
    await bench.finish(bench.pawl.close())
    await expect(bench.pawl.work()).rejects.toThrow(
      expect.objectContaining({ code: 'E_PAWL_CLOSED' }),
    )
  })
})

describe('a succeeded outcome', () => {
  it('says whether effects are still being delivered', async () => {
    let deliver = () => {}
    const may = new Promise<void>((resolve) => {
      deliver = resolve
    })
    const sends = defineJob({
      name: 'sends',
      effects: { mail: () => may },
      run: ({ commit }) => commit((tx) => tx.effect('mail')),
    })
    const bench = await EngineBench.open([sends])
    await bench.work()
    const handle = await bench.pawl.enqueue(sends, null)
    const early = await bench.finish(handle.result())
    expect(early).toMatchObject({ kind: 'succeeded', isDelivering: true })
    deliver()
    await bench.until(async () => (await handle.get()).outcome === 'succeeded')
    const later = await bench.finish(handle.result())
    expect(later).toMatchObject({ isDelivering: false, job: { state: 'succeeded' } })
  })
})
