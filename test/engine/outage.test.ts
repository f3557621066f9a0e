// A store that is away: a worker waits it out, asks rarely, and loses nothing that it has finished.
import { describe, expect, it } from 'vitest'
import { defineJob } from '../../src/engine/define-job.ts'
import type { Store } from '../../src/stores/contract/store.ts'
import { StoreUnavailable } from '../../src/stores/errors.ts'
import { EngineBench, untilAborted } from './bench.ts'

const echo = defineJob({ name: 'echo', run: ({ input }) => input })

/** A store whose verbs fail while it is away, and who called which of them meanwhile. */
class Outage {
  isOn = false
  readonly calls: { readonly verb: string; readonly at: number }[] = []

  /** Puts it between a store and whoever uses it. */
  readonly between = (store: Store): Store =>
    new Proxy(store, {
      get: (target, name: keyof Store) => {
        const value = target[name] as unknown
        if (typeof value !== 'function') return value
        const verb = (value as (...values: unknown[]) => unknown).bind(target)
        if (['now', 'onWake', 'close'].includes(String(name))) return verb
        return (...values: unknown[]) => {
          if (!this.isOn) return verb(...values)
          this.calls.push({ verb: String(name), at: store.now() })
          return Promise.reject(new StoreUnavailable(0, 'away'))
        }
      },
    })

  /** The shortest time between two calls, of some verbs or of all but some. */
  shortest(isMeant: (verb: string) => boolean): number {
    const times = this.calls.filter(({ verb }) => isMeant(verb)).map(({ at }) => at)
    return Math.min(...times.slice(1).map((at, i) => at - (times[i] as number)))
  }
}

describe('an outage', () => {
  it('is waited out five seconds at a time, and then what was finished is reported', async () => {
    const outage = new Outage()
    let end: () => void = () => {}
    const job = defineJob({
      name: 'through',
      run: () =>
        new Promise<string>((resolve) => {
          end = () => resolve('kept')
        }),
    })
    const bench = await EngineBench.open([job], outage.between)
    const worker = await bench.work()
    const handle = await bench.pawl.enqueue(job, null)
    await bench.until(async () => (await bench.state(handle.id)) === 'running')
    outage.isOn = true
    end()
    await bench.until(() => bench.trace.filter((step) => step.endsWith('→ ErrorWait')).length === 2)
    expect(worker.states[0]).toBe('ReportingSuccess')
    outage.isOn = false
    expect(await bench.finish(handle.result())).toMatchObject({ kind: 'succeeded', output: 'kept' })
    expect((await handle.get()).attempt).toBe(1)
  })

  it('of a minute is met by one call in five seconds, and ended by the next one', async () => {
    const outage = new Outage()
    const bench = await EngineBench.open([echo], outage.between)
    const worker = await bench.work({ poll: '100ms', checkup: false })
    await bench.until(() => worker.states[0] === 'Idle')
    outage.isOn = true
    await bench.pass(60_000)
    expect(outage.calls.length).toBeGreaterThanOrEqual(10)
    expect(outage.calls.length).toBeLessThanOrEqual(13)
    expect(outage.shortest(() => true)).toBeGreaterThanOrEqual(5000)
    outage.isOn = false
    const backAt = bench.store.now()
    const job = await bench.pawl.enqueue(echo, 'back')
    expect(await bench.finish(job.result())).toMatchObject({ output: 'back' })
    expect(bench.store.now() - backAt).toBeLessThanOrEqual(5100)
  })

  it('does not stop the doctor, whose rounds add at most two calls in each interval', async () => {
    const outage = new Outage()
    const bench = await EngineBench.open([echo], outage.between)
    const worker = await bench.work({ poll: '100ms', checkup: '10s' })
    await bench.until(() => worker.states[0] === 'Idle')
    outage.isOn = true
    await bench.pass(60_000)
    expect(outage.calls.length).toBeGreaterThanOrEqual(10 + 5)
    expect(outage.calls.length).toBeLessThanOrEqual(13 + 2 * 6)
  })

  it('is not asked about more often because there is work in hand', async () => {
    const outage = new Outage()
    const ends: (() => void)[] = []
    const job = defineJob({
      name: 'busy',
      run: ({ progress }) => {
        progress('begun')
        return new Promise<void>((resolve) => void ends.push(resolve))
      },
    })
    const bench = await EngineBench.open([job], outage.between)
    await bench.work({ concurrency: 5, lease: '5m', checkup: false })
    const inputs = Array.from({ length: 5 }, (_, input) => ({ input }))
    await bench.pawl.enqueueMany(job, inputs)
    await bench.until(() => ends.length === 5)
    outage.isOn = true
    // One handler after the other ends while nobody can be told of it.
    for (const end of ends) {
      end()
      await bench.pass(12_000)
    }
    const isBeat = (verb: string) => verb === 'heartbeat'
    expect(outage.shortest((verb) => !isBeat(verb))).toBeGreaterThanOrEqual(5000)
    expect(outage.shortest(isBeat)).toBeGreaterThanOrEqual(5000)
    outage.isOn = false
    await bench.until(async () => (await bench.store.counts()).lanes.ended === 5)
    expect((await bench.store.list({})).items.every(({ attempt }) => attempt === 1)).toBe(true)
  })

  it('longer than a lease leaves what was finished to its fence, and loses it once', async () => {
    const outage = new Outage()
    let end: () => void = () => {}
    const job = defineJob({
      name: 'too late',
      run: ({ attempt }) =>
        attempt > 1
          ? attempt
          : new Promise<number>((resolve) => {
              end = () => resolve(attempt)
            }),
    })
    const bench = await EngineBench.open([job], outage.between)
    await bench.work({ lease: '30s' })
    const handle = await bench.pawl.enqueue(job, null)
    await bench.until(async () => (await bench.store.get(handle.id))?.state === 'running')
    outage.isOn = true
    end()
    await bench.pass(60_000, 100)
    const lost = () => bench.events.filter(({ type }) => type === 'lost')
    expect(lost()).toEqual([])
    outage.isOn = false
    expect(await bench.finish(handle.result())).toMatchObject({ kind: 'succeeded', output: 2 })
    expect(lost()).toHaveLength(1)
  })

  it('does not keep a worker from stopping, which asks as rarely', async () => {
    const outage = new Outage()
    const job = defineJob({ name: 'running', ...untilAborted([]) })
    const bench = await EngineBench.open([job], outage.between)
    const worker = await bench.work({ drain: '1s' })
    const handle = await bench.pawl.enqueue(job, null)
    await bench.until(async () => (await bench.store.get(handle.id))?.state === 'running')
    outage.isOn = true
    const start = bench.store.now()
    await bench.finish(worker.stop())
    expect(bench.store.now() - start).toBeLessThanOrEqual(20_000)
    const settles = outage.calls.filter(({ verb }) => verb === 'settle')
    expect(settles.length).toBeGreaterThanOrEqual(3)
    expect(outage.shortest((verb) => verb === 'settle')).toBeGreaterThanOrEqual(5000)
    outage.isOn = false
  })
})
