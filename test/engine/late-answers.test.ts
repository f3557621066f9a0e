// Something happens to an attempt while its report is on its way to the store: what the worker has
// counted on meanwhile stays true, for the same call claims the next job for its slot.
import { CommandInvalid } from 'pawl'
import { describe, expect, it } from 'vitest'
import { defineJob } from '../../src/engine/define-job.ts'
import type { Settled, Store } from '../../src/stores/contract/store.ts'
import { EngineBench } from './bench.ts'

const LEASE = '3s'
const echo = defineJob({ name: 'echo', run: ({ input }) => input })

/** A store whose first settlement is in the hands of the test. */
function settlingFirst(first: (settle: () => Promise<Settled>) => Promise<Settled>) {
  let isFirst = true
  return (store: Store): Store =>
    new Proxy(store, {
      get(target, name: keyof Store) {
        const value = target[name] as unknown
        if (typeof value !== 'function') return value
        const verb = (value as (...values: unknown[]) => unknown).bind(target)
        if (name !== 'settle' || !isFirst) return verb
        return (...values: Parameters<Store['settle']>) => {
          isFirst = false
          return first(() => target.settle(...values))
        }
      },
    })
}

const errorsOf = ({ events }: EngineBench) => events.filter(({ type }) => type === 'error')

describe('while a report is on its way', () => {
  it('a cancellation that comes too late costs no slot, and no report is made twice', async () => {
    let letGo: () => void = () => {}
    let isHeld = false
    const wrap = settlingFirst(async (settle) => {
      isHeld = true
      await new Promise<void>((resolve) => {
        letGo = resolve
      })
      return settle()
    })
    const bench = await EngineBench.open([echo], wrap)
    const first = await bench.pawl.enqueue(echo, 1)
    const second = await bench.pawl.enqueue(echo, 2)
    await bench.work({ lease: LEASE })
    await bench.until(() => isHeld)
    await first.cancel()
    // Long enough for a heartbeat, which tells the worker of it.
    await bench.pass(1500, 100)
    letGo()
    for (const handle of [first, second]) {
      expect(await bench.finish(handle.result())).toMatchObject({ kind: 'succeeded' })
    }
    expect(errorsOf(bench)).toEqual([])
    const triggers = (await bench.store.facts(second.id)).map(({ trigger }) => trigger)
    expect(triggers).toEqual(['create', 'claim', 'commit'])
  })

  it('what was claimed for the slot of a report that is refused is given back', async () => {
    let refused: Settled | undefined
    const bench = await EngineBench.open(
      [echo],
      settlingFirst(async () => {
        const request = { worker: 'w', limit: 1, leaseMs: 3000, start: true }
        const claimed = await bench.store.claim(request)
        const error = new CommandInvalid('usage', 'must be finite')
        refused = { answers: [{ kind: 'rejected', error }], claimed }
        return refused
      }),
    )
    const first = await bench.pawl.enqueue(echo, 1)
    const second = await bench.pawl.enqueue(echo, 2)
    await bench.work({ id: 'w', lease: LEASE })
    expect(await bench.finish(first.result())).toMatchObject({ kind: 'failed' })
    expect(await bench.finish(second.result())).toMatchObject({ kind: 'succeeded' })
    expect(refused?.claimed.map(({ job }) => job.id)).toEqual([second.id])
    expect(errorsOf(bench)).toEqual([])
    expect((await second.get()).crashes).toBe(0)
    expect((await second.get()).releases).toBe(1)
  })
})
