// The dispatcher in virtual time: retries, time-outs, leases, outages, and stopping.
import { type Delivery, RetryAfter, Terminal } from 'pawl'
import { describe, expect, it } from 'vitest'
import { defineJob } from '../../src/engine/define-job.ts'
import type { EffectOptions } from '../../src/engine/effects/effects.ts'
import { DeliveryTimeout, ShuttingDown } from '../../src/engine/errors.ts'
import type { WorkOptions } from '../../src/engine/work-options.ts'
import type { EffectInfo, Store } from '../../src/stores/contract/store.ts'
import { StoreUnavailable } from '../../src/stores/errors.ts'
import { EngineBench } from './bench.ts'

const FIXED = { backoff: 'fixed', delay: '10s', jitter: 0 } as const
const OPERATOR = { actor: 'operator', operator: 'ann', note: 'mended' } as const

/** A job whose one effect, or several of them, is delivered like this. */
const sender = (effect: EffectOptions, count = 1) =>
  defineJob({
    name: 'sender',
    effects: { mail: effect },
    run: ({ commit }) =>
      commit((tx) => {
        for (let i = 0; i < count; i++) tx.effect('mail', i)
        return 'sent'
      }),
  })

interface Started {
  readonly bench: EngineBench
  readonly id: string
  effects(): Promise<readonly EffectInfo[]>
}

/** The time of the bench that was opened last. */
let now: () => number = () => 0

/** A bench on which one such job has committed. */
async function start(
  job: ReturnType<typeof sender>,
  options: WorkOptions = {},
  wrap?: (store: Store) => Store,
): Promise<Started> {
  const bench = await EngineBench.open([job], wrap)
  now = () => bench.environment.clock.now()
  await bench.work(options)
  const handle = await bench.pawl.enqueue(job, null)
  await bench.finish(handle.result())
  const effects = async () => (await bench.store.listEffects({ jobId: handle.id })).items
  return { bench, id: handle.id, effects }
}

/** What became of deliveries, each with its number. */
function resultsOf({ bench }: Started): string[] {
  return bench.events.flatMap((event) =>
    event.type === 'effect' ? [`${event.result} ${event.tries}`] : [],
  )
}

/** A store some of whose verbs go through this first. */
const passing = (hook: (verb: string) => void | Promise<void>) => (store: Store) =>
  new Proxy(store, {
    get(target, name) {
      const value = target[name as keyof Store] as unknown
      if (typeof value !== 'function') return value
      const verb = value.bind(target) as (...values: unknown[]) => unknown
      if (name !== 'claimEffects' && name !== 'settleEffects') return verb
      return async (...values: unknown[]) => {
        await hook(name)
        return verb(...values)
      }
    },
  })

describe('a delivery', () => {
  it('that fails is tried again at its time, under the same key, and is counted', async () => {
    const seen: [string, number, number][] = []
    const started = await start(
      sender({
        retry: FIXED,
        deliver: ({ key, tries }) => {
          seen.push([key, tries, now()])
          if (tries < 3) throw new Error(`no answer ${tries}`)
        },
      }),
    )
    const { bench, id } = started
    await bench.until(async () => (await bench.state(id)) === 'succeeded')
    expect(seen.map(([key, tries]) => [key, tries])).toEqual(
      [1, 2, 3].map((tries) => [`${id}/mail/1`, tries]),
    )
    const times = seen.map(([, , at]) => at)
    for (const wait of [2, 1].map((i) => (times[i] as number) - (times[i - 1] as number))) {
      expect(wait).toBeGreaterThanOrEqual(10_000)
      expect(wait).toBeLessThan(10_100)
    }
    expect(resultsOf(started)).toEqual(['retry 1', 'retry 2', 'delivered 3'])
  })

  it('that fails its last try is parked with its error; its job keeps its result', async () => {
    const started = await start(
      sender({
        retry: { ...FIXED, max: 2 },
        deliver: ({ tries }) => {
          throw new Error(`gone ${tries}`)
        },
      }),
    )
    const { bench, id, effects } = started
    await bench.until(async () => (await effects())[0]?.state === 'parked')
    expect(await effects()).toMatchObject([{ tries: 3, error: 'Error: gone 3' }])
    expect(resultsOf(started)).toEqual(['retry 1', 'retry 2', 'parked 3'])
    expect((await bench.store.counts()).lanes.delivering).toBe(1)
    const outcome = await bench.finish(bench.pawl.job(id).result())
    expect(outcome).toMatchObject({ kind: 'succeeded', output: 'sent' })
  })

  it('has ten tries by default, further and further apart', async () => {
    const times: number[] = []
    const started = await start(
      sender({
        deliver: () => {
          times.push(now())
          throw new Error('gone')
        },
      }),
    )
    const { bench, effects } = started
    await bench.until(async () => (await effects())[0]?.state === 'parked', 10_000)
    expect(times).toHaveLength(10)
    const waits = times.slice(1).map((at, i) => at - (times[i] as number))
    for (const [i, wait] of waits.entries()) {
      const delay = Math.min(1000 * 3 ** i, 3_600_000)
      expect(wait).toBeGreaterThanOrEqual(delay)
      expect(wait).toBeLessThanOrEqual(delay * 2 + 20_000)
    }
  })

  it('says itself when it wants to be tried again, or that it is no use', async () => {
    const errors = [new RetryAfter(60_000, 'busy'), new Terminal('no such address')]
    const started = await start(
      sender({
        deliver: ({ tries }) => {
          throw errors[tries - 1]
        },
      }),
    )
    const { bench, effects } = started
    await bench.until(() => resultsOf(started).length === 1)
    const [waiting] = await effects()
    expect((waiting?.runAt ?? 0) - bench.store.now()).toBeGreaterThan(59_000)
    await bench.until(() => resultsOf(started).length === 2, 1000)
    expect(resultsOf(started)).toEqual(['retry 1', 'parked 2'])
    expect(await effects()).toMatchObject([{ state: 'parked', error: 'Terminal: no such address' }])
  })

  it('that takes too long is tried again, and keeps its place while it goes on', async () => {
    const reasons: unknown[] = []
    let end: () => void = () => {}
    const started = await start(
      sender(
        {
          timeout: '3s',
          retry: FIXED,
          deliver: ({ signal, tries, payload }) => {
            if (tries > 1 || payload !== 0) return
            signal.addEventListener('abort', () => reasons.push(signal.reason))
            return new Promise<void>((resolve) => {
              end = resolve
            })
          },
        },
        2,
      ),
      { effects: { concurrency: 1 } },
    )
    const { bench } = started
    await bench.until(() => resultsOf(started).length === 1)
    expect(reasons).toEqual([expect.any(DeliveryTimeout)])
    bench.environment.advance(60_000)
    await bench.until(() => bench.store.now() > 0)
    expect(resultsOf(started)).toEqual(['retry 1'])
    end()
    await bench.until(() => resultsOf(started).length === 3)
    expect(resultsOf(started).sort()).toEqual(['delivered 1', 'delivered 2', 'retry 1'])
  })

  it('is one of so many at once', async () => {
    let running = 0
    let most = 0
    const started = await start(
      sender(
        {
          deliver: async () => {
            most = Math.max(most, ++running)
            await new Promise<void>((resolve) => setImmediate(resolve))
            running--
          },
        },
        20,
      ),
      { effects: { concurrency: 3 } },
    )
    await started.bench.until(() => resultsOf(started).length === 20)
    expect(most).toBe(3)
  })
})

describe('a dispatcher', () => {
  it('delivers what its process commits at once, without waiting for its clock', async () => {
    const job = sender({ deliver: () => {} })
    const bench = await EngineBench.open([job])
    await bench.work()
    for (let i = 0; i < 200; i++) {
      bench.environment.advance(1000)
      await new Promise<void>((resolve) => setImmediate(resolve))
    }
    const handle = await bench.pawl.enqueue(job, null)
    const began = bench.environment.clock.now()
    await bench.until(async () => (await handle.get()).outcome === 'succeeded', 1)
    expect(bench.environment.clock.now() - began).toBeLessThan(30)
  })

  it('that is switched off delivers nothing, and leaves it to others', async () => {
    let delivered = 0
    const started = await start(sender({ deliver: () => delivered++ }), { effects: false })
    const { bench, id } = started
    for (let i = 0; i < 100; i++) {
      bench.environment.advance(1000)
      await new Promise<void>((resolve) => setImmediate(resolve))
    }
    expect(delivered).toBe(0)
    await bench.work({ id: 'second' })
    await bench.until(async () => (await bench.state(id)) === 'succeeded')
    expect(delivered).toBe(1)
  })

  it('finishes what a process committed that died before it delivered', async () => {
    const keys: string[] = []
    const started = await start(sender({ deliver: ({ key }) => keys.push(key) }), {
      effects: false,
    })
    const { bench, id } = started
    // Somebody took it, and was never heard of again.
    const [taken] = await bench.store.claimEffects({ limit: 1, leaseMs: 45_000 })
    await bench.work({ id: 'second' })
    await bench.until(async () => (await bench.state(id)) === 'succeeded')
    expect(keys).toEqual([taken?.key])
    expect(resultsOf(started)).toEqual(['delivered 2'])
  })

  it('parks an effect of which no delivery was answered, without another one', async () => {
    let delivered = 0
    const started = await start(sender({ deliver: () => delivered++, retry: { max: 1 } }), {
      effects: false,
    })
    const { bench, effects } = started
    for (const _ of [1, 2]) {
      await bench.store.claimEffects({ limit: 1, leaseMs: 1000 })
      bench.environment.advance(1000)
    }
    await bench.work({ id: 'second' })
    await bench.until(async () => (await effects())[0]?.state === 'parked')
    expect(await effects()).toMatchObject([{ error: expect.stringContaining('2 times') }])
    expect(delivered).toBe(0)
    // A person who has looked at it gives it fresh tries.
    const [effect] = await effects()
    await bench.store.retryEffects([effect?.key ?? ''], OPERATOR)
    await bench.until(() => delivered === 1)
  })

  it('gives back an effect that it does not know, at no cost, for those who do', async () => {
    const started = await start(sender({ deliver: () => {} }), { effects: false })
    const { bench, effects } = started
    const older = defineJob({ name: 'sender', effects: { other: () => {} }, run: () => 1 })
    const old = await EngineBench.openOn(bench, [older])
    await old.work({ id: 'old' })
    await bench.until(async () => (await effects())[0]?.error !== undefined)
    expect(await effects()).toMatchObject([
      { state: 'pending', tries: 0, error: expect.stringContaining('mail') },
    ])
    await bench.work({ id: 'new' })
    await bench.until(() => resultsOf(started).includes('delivered 1'))
  })

  it('delivers again, under the same key, what it could not record', async () => {
    const keys: string[] = []
    const started = await start(
      sender({ deliver: ({ key }) => keys.push(key) }),
      {},
      passing((verb) => {
        // The first process never gets its mark through.
        if (verb === 'settleEffects' && keys.length === 1) throw new StoreUnavailable(0, 'gone')
      }),
    )
    const { bench, id } = started
    await bench.until(() => keys.length === 1)
    const second = await EngineBench.openOn(bench, [
      sender({ deliver: ({ key }) => keys.push(key) }),
    ])
    await second.work({ id: 'second' })
    await bench.until(async () => (await bench.state(id)) === 'succeeded', 100)
    expect(keys).toEqual([`${id}/mail/1`, `${id}/mail/1`])
    await bench.until(() => resultsOf(started).includes('lost 1'), 100)
  })

  it('waits out an outage, five seconds at a time, and records what it delivered', async () => {
    let isAway = false
    let asked = 0
    let delivered = 0
    const started = await start(
      sender({
        deliver: () => {
          isAway = true
          delivered++
        },
      }),
      {},
      passing(() => {
        if (!isAway) return
        asked++
        throw new StoreUnavailable(0, 'away')
      }),
    )
    const { bench, id } = started
    await bench.until(() => asked > 0)
    const began = bench.environment.clock.now()
    asked = 0
    await bench.until(() => bench.environment.clock.now() - began >= 30_000)
    expect(asked).toBeGreaterThanOrEqual(5)
    expect(asked).toBeLessThanOrEqual(6)
    isAway = false
    await bench.until(async () => (await bench.state(id)) === 'succeeded')
    expect(delivered).toBe(1)
    expect(resultsOf(started)).toEqual(['delivered 1'])
  })

  it('asks less and less often while there is nothing to deliver', async () => {
    const times: number[] = []
    const job = sender({ deliver: () => {} })
    const bench = await EngineBench.open(
      [job],
      passing((verb) => {
        if (verb === 'claimEffects') times.push(bench?.environment.clock.now() ?? 0)
      }),
    )
    await bench.work({ poll: '2s' })
    await bench.until(() => times.length > 12)
    const waits = times.slice(3).map((at, i) => at - (times[i + 2] as number))
    expect(Math.max(...waits.slice(-3))).toBeGreaterThanOrEqual(1000)
    expect(Math.max(...waits)).toBeLessThanOrEqual(2010)
  })
})

describe('a dispatcher that stops', () => {
  it('waits for what is being delivered, and records it', async () => {
    let end: () => void = () => {}
    const started = await start(
      sender({
        deliver: () =>
          new Promise<void>((resolve) => {
            end = resolve
          }),
      }),
    )
    const { bench, id, effects } = started
    await bench.until(async () => (await effects())[0]?.tries === 1)
    const closing = bench.pawl.close()
    await new Promise<void>((resolve) => setImmediate(resolve))
    end()
    await bench.finish(closing)
    expect(await bench.state(id)).toBe('succeeded')
  })

  it('delivers what its jobs have committed last', async () => {
    const delivered: unknown[] = []
    const job = sender({ deliver: ({ payload }) => delivered.push(payload) }, 3)
    const bench = await EngineBench.open([job])
    await bench.work()
    const handle = await bench.pawl.enqueue(job, null)
    await bench.until(async () => (await bench.state(handle.id)) === 'running')
    await bench.finish(bench.pawl.close())
    expect(delivered).toEqual([0, 1, 2])
    expect(await bench.state(handle.id)).toBe('succeeded')
  })

  it('tells what does not end to stop, gives it back, and does not wait for the deaf', async () => {
    const reasons: unknown[] = []
    const deliver = ({ signal, payload }: Delivery) =>
      new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => {
          reasons.push(signal.reason)
          if (payload === 0) reject(signal.reason)
        })
      })
    const started = await start(sender({ deliver, timeout: '5m' }, 2), { drain: '2s' })
    const { bench, effects } = started
    await bench.until(async () => (await effects()).every(({ tries }) => tries === 1))
    const began = bench.environment.clock.now()
    await bench.finish(bench.pawl.close())
    expect(bench.environment.clock.now() - began).toBeLessThan(2000 + 5000 + 1000)
    expect(reasons).toEqual([expect.any(ShuttingDown), expect.any(ShuttingDown)])
    expect(resultsOf(started)).toEqual(['retry 1', 'retry 1'])
    const now = bench.store.now()
    for (const { state, runAt } of await effects()) {
      expect([state, runAt <= now]).toEqual(['pending', true])
    }
  })

  it('ends although its store is away', async () => {
    let isAway = false
    const started = await start(
      sender({
        deliver: () => {
          isAway = true
        },
      }),
      { drain: '1s' },
      passing(() => {
        if (isAway) throw new StoreUnavailable(0, 'away')
      }),
    )
    const { bench } = started
    await bench.until(() => isAway)
    const began = bench.environment.clock.now()
    await bench.finish(bench.pawl.close())
    expect(bench.environment.clock.now() - began).toBeLessThan(20_000)
  })
})
