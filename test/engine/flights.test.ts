// Two calls of one worker are on their way to the store at once: they are for disjoint slots, and
// whatever happens to one of them, the other keeps what it has promised.
import { CommandInvalid } from 'pawl'
import { describe, expect, it } from 'vitest'
import { defineJob } from '../../src/engine/define-job.ts'
import type { ClaimRequest, Settled, Settlement, Store } from '../../src/stores/contract/store.ts'
import { StoreUnavailable } from '../../src/stores/errors.ts'
import { EngineBench } from './bench.ts'

const LEASE = '30s'
const SLOTS = 4

/** A call that reports and claims, in the hands of the test. */
interface Call {
  readonly settlements: readonly Settlement[]
  readonly next: ClaimRequest | undefined
  /** Does it, or answers something else. */
  go(answer?: () => Promise<Settled>): void
}

/** A store that can use two calls at once, and keeps each until the test lets it go. */
function keeping(calls: Call[], isKept: () => boolean = () => true) {
  return (store: Store): Store =>
    new Proxy(store, {
      get(target, name: keyof Store) {
        if (name === 'flights') return { max: 2, reportsMin: 1 }
        const value = target[name] as unknown
        if (typeof value !== 'function') return value
        const verb = (value as (...values: unknown[]) => unknown).bind(target)
        if (name !== 'settle') return verb
        return (...[settlements, next]: Parameters<Store['settle']>) => {
          const settle = () => target.settle(settlements, next)
          if (next === undefined || !isKept()) return settle()
          return new Promise<Settled>((resolve, reject) => {
            const go = (answer = settle) => {
              calls.splice(calls.indexOf(call), 1)
              answer().then(resolve, reject)
            }
            const call: Call = { settlements, next, go }
            calls.push(call)
          })
        }
      },
    })
}

/** A job type that counts how many of its handlers run at once. */
function counting() {
  const seen = { running: 0, most: 0, runs: new Map<unknown, number>() }
  const job = defineJob({
    name: 'counted',
    run: async ({ input }) => {
      seen.runs.set(input, (seen.runs.get(input) ?? 0) + 1)
      seen.most = Math.max(seen.most, ++seen.running)
      await Promise.resolve()
      seen.running--
    },
  })
  return { job, seen }
}

async function opened(jobs: number, isKept?: () => boolean) {
  const calls: Call[] = []
  const { job, seen } = counting()
  const bench = await EngineBench.open([job], keeping(calls, isKept))
  const items = Array.from({ length: jobs }, (_, input) => ({ input }))
  const handles = await bench.pawl.enqueueMany(job, items)
  return { bench, calls, seen, handles, job }
}

const triggersOf = async ({ store }: EngineBench, id: string) =>
  (await store.facts(id)).map(({ trigger }) => trigger)
const errorsOf = ({ events }: EngineBench) => events.filter(({ type }) => type === 'error')
const idsOf = (call: Call | undefined) => call?.settlements.map(({ held }) => held.job.id) ?? []

describe('two calls at once', () => {
  it('divide the slots, claim for their own alone, and run each job once', async () => {
    const { bench, calls, seen, handles } = await opened(40)
    await bench.work({ concurrency: SLOTS, lease: LEASE })
    let most = 0
    const isDone = async () => {
      most = Math.max(most, calls.length)
      const limits = calls.reduce((sum, { next }) => sum + (next?.limit ?? 0), 0)
      expect(limits + seen.running).toBeLessThanOrEqual(SLOTS)
      // The younger one first, so that answers come in another order than calls.
      calls.at(-1)?.go()
      return seen.runs.size === 40
    }
    await bench.until(isDone)
    const last = Promise.all(handles.map((handle) => handle.result()))
    void bench.until(async () => {
      calls[0]?.go()
      return calls.length === 0 && (await isEnded(bench, handles))
    })
    await bench.finish(last)
    expect(most).toBe(2)
    expect(seen.most).toBeLessThanOrEqual(SLOTS)
    expect([...seen.runs.values()]).toEqual(Array(40).fill(1))
    for (const { id } of handles) {
      expect(await triggersOf(bench, id)).toEqual(['create', 'claim', 'commit'])
    }
    expect(errorsOf(bench)).toEqual([])
  })

  it('are not made for a few reports beside another, nor after a short claim', async () => {
    const { bench, calls, seen, handles } = await opened(3)
    await bench.work({ concurrency: SLOTS, lease: LEASE })
    await bench.until(() => calls.length > 0)
    expect(calls).toHaveLength(1)
    // Three reports and the free slot.
    expect(calls[0]?.settlements).toHaveLength(3)
    expect(calls[0]?.next?.limit).toBe(SLOTS)
    calls[0]?.go()
    await bench.until(() => isEnded(bench, handles))
    await bench.pass(1000, 50)
    expect(calls).toEqual([])
    expect(seen.most).toBe(3)
  })
})

describe('a call that fails beside another', () => {
  it('lets the other end, then the worker waits, and sends its reports again', async () => {
    let isKept = true
    const { bench, calls, handles, seen } = await opened(12, () => isKept)
    await bench.work({ concurrency: SLOTS, lease: LEASE })
    await bench.until(() => calls.length === 2)
    const [failing, other] = [...calls]
    const failed = idsOf(failing)
    failing?.go(() => Promise.reject(new StoreUnavailable(0, 'away')))
    await bench.pass(500, 50)
    // The other one is still on its way: nothing else is sent, and the loop has not failed yet.
    expect(calls).toEqual([other])
    expect(bench.trace).not.toContain('Polling → ErrorWait')
    isKept = false
    other?.go()
    await bench.until(() => bench.trace.includes('Polling → ErrorWait'))
    await bench.until(() => isEnded(bench, handles), 100)
    expect(errorsOf(bench)).toHaveLength(1)
    expect([...seen.runs.values()]).toEqual(Array(12).fill(1))
    for (const id of failed) {
      expect(await triggersOf(bench, id)).toEqual(['create', 'claim', 'commit'])
    }
  })
})

describe('a report that is refused beside another call', () => {
  it('keeps its slot: the job that was claimed for it is released', async () => {
    let isKept = true
    const { bench, calls, handles, seen } = await opened(12, () => isKept)
    await bench.work({ id: 'w', concurrency: SLOTS, lease: LEASE })
    await bench.until(() => calls.length === 2)
    const [refusing] = calls
    const [refused] = idsOf(refusing)
    let released: string | undefined
    refusing?.go(async () => {
      const { settlements, next } = refusing
      const { answers, claimed } = await bench.store.settle(settlements.slice(1), next)
      released = claimed.at(-1)?.job.id
      const error = new CommandInvalid('usage', 'must be finite')
      return { answers: [{ kind: 'rejected', error }, ...answers], claimed }
    })
    await bench.until(() => calls.length === 2)
    isKept = false
    for (const call of [...calls]) call.go()
    await bench.until(() => isEnded(bench, handles), 100)
    expect(seen.most).toBeLessThanOrEqual(SLOTS)
    expect(errorsOf(bench)).toEqual([])
    expect(await bench.state(refused as string)).toBe('failed')
    expect(await triggersOf(bench, released as string)).toContain('release')
    expect(await bench.state(released as string)).toBe('succeeded')
  })
})

describe('a worker that is stopped with two calls on their way', () => {
  it('waits for both, runs what they claimed, and leaves no job held', async () => {
    let isKept = true
    const { bench, calls, handles, seen } = await opened(12, () => isKept)
    const worker = await bench.work({ concurrency: SLOTS, lease: LEASE })
    await bench.until(() => calls.length === 2)
    let isStopped = false
    const stopping = worker.stop().then(() => {
      isStopped = true
    })
    await bench.pass(500, 50)
    expect(isStopped).toBe(false)
    expect(bench.trace).not.toContain('Polling → Draining')
    isKept = false
    for (const call of [...calls]) call.go()
    await bench.finish(stopping)
    expect(worker.running).toBe(0)
    expect([...seen.runs.values()]).toEqual(Array(2 * SLOTS).fill(1))
    const states = await Promise.all(handles.map(({ id }) => bench.state(id)))
    expect(states.filter((state) => state === 'succeeded')).toHaveLength(2 * SLOTS)
    expect(states.filter((state) => state === 'running')).toEqual([])
    expect(errorsOf(bench)).toEqual([])
  })
})

async function isEnded(bench: EngineBench, handles: readonly { readonly id: string }[]) {
  const states = await Promise.all(handles.map(({ id }) => bench.state(id)))
  return states.every((state) => state === 'succeeded' || state === 'failed')
}
