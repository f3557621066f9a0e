// A store that cannot be asked: leases that nobody could renew are given up by their own process.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LeaseLost } from 'pawl'
import { standard } from 'pawl/rules'
import { testEnvironment } from 'pawl/testing'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { defineJob } from '../../src/engine/define-job.ts'
import { HeartbeatFailed } from '../../src/engine/errors.ts'
import { placeOf } from '../../src/engine/store-options.ts'
import { TimerHeartbeat } from '../../src/engine/worker/heartbeat.ts'
import { ThreadHeartbeat } from '../../src/engine/worker/heartbeat-thread.ts'
import type { Beat, Heartbeat, Ref, Store } from '../../src/stores/contract/store.ts'
import { StoreUnavailable } from '../../src/stores/errors.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { EngineBench, untilAborted } from './bench.ts'

const LEASE_MS = 30_000
const NOWHERE = placeOf('postgres://127.0.0.1:1/none')

/** A host on a store of which the test decides what each renewal comes to. */
function hosted(heartbeat: (beats: readonly Beat[]) => Promise<Heartbeat>) {
  const environment = testEnvironment()
  const lost: unknown[] = []
  const asked: number[] = []
  const start = environment.clock.now()
  const store = {
    heartbeat: (beats: readonly Beat[]) => {
      asked.push(environment.clock.now() - start)
      return heartbeat(beats)
    },
  }
  const host = new TimerHeartbeat(store, environment, LEASE_MS, {
    onLost: ({ ref }) => lost.push(ref),
    onCancel: () => {},
    onError: () => {},
  })
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 100) {
      environment.advance(100)
      await new Promise<void>((turn) => setImmediate(turn))
    }
  }
  return { host, lost, asked, pass }
}

const beat = (ref: number): Beat => ({ ref, fence: { attempt: 1, claim: `claim ${ref}` } })
const renewed = async () => ({ lost: [], cancelling: [] })
const away = () => Promise.reject(new StoreUnavailable(0, 'away'))

describe('a lease', () => {
  it('that nobody could renew is given up after its whole length, and not before', async () => {
    const { host, lost, pass } = hosted(away)
    host.track([beat(1)])
    await pass(LEASE_MS - 100)
    expect(lost).toEqual([])
    await pass(100)
    expect(lost).toEqual([1])
    await host.close()
  })

  it('is given up although the renewal that was asked for has not come back', async () => {
    const { host, lost, pass } = hosted(() => new Promise(() => {}))
    host.track([beat(1), beat(2)])
    await pass(LEASE_MS)
    expect(lost).toEqual([1, 2])
  })

  it('lasts a whole length from the sending of the last renewal that succeeded', async () => {
    let isAway = false
    const { host, lost, asked, pass } = hosted(() => (isAway ? away() : renewed()))
    host.track([beat(1)])
    await pass(95_000)
    isAway = true
    const last = Math.max(...asked)
    await pass(last + LEASE_MS - 95_000 - 100)
    expect(lost).toEqual([])
    await pass(200)
    expect(lost).toEqual([1])
    await host.close()
  })

  it('of an attempt that was reported is nothing to lose', async () => {
    const { host, lost, pass } = hosted(away)
    host.track([beat(1), beat(2)])
    await pass(20_000)
    host.untrack([1])
    await pass(20_000)
    expect(lost).toEqual([2])
    await host.close()
  })

  it('that was old when it was tracked is given up so much earlier', async () => {
    const { host, lost, pass } = hosted(away)
    host.track([beat(1), beat(2)], [25_000, 0])
    await pass(6000)
    expect(lost).toEqual([1])
    await pass(LEASE_MS)
    expect(lost).toEqual([1, 2])
    await host.close()
  })
})

describe('leases that no thread can renew', () => {
  it('are given up after their whole length, and not before', async () => {
    const lost: { readonly ref: unknown; readonly afterMs: number }[] = []
    const errors: unknown[] = []
    const start = performance.now()
    // A thread of Node 20 cannot load a source that was not built, and dies at once; one of a newer
    // Node can, but finds no such store.
    const host = new ThreadHeartbeat(
      { place: NOWHERE, leaseMs: 1500, timeoutMs: undefined },
      {
        onLost: ({ ref }) => lost.push({ ref, afterMs: performance.now() - start }),
        onCancel: () => {},
        onError: (error) => errors.push(error),
      },
    )
    onTestFinished(() => host.close())
    host.track([beat(1), beat(2)])
    host.untrack([2])
    await vi.waitFor(() => expect(lost).toHaveLength(1), { timeout: 10_000 })
    expect(lost[0]).toMatchObject({ ref: 1 })
    expect(lost[0]?.afterMs).toBeGreaterThanOrEqual(1500)
    expect(errors.length).toBeGreaterThan(2)
  })
})

it('an error of the thread arrives with its code, its hint and its details', async () => {
  const built = new URL('../../dist/engine/worker/heartbeat-thread.js', import.meta.url).href
  const { ThreadHeartbeat: Built } = (await import(built)) as {
    ThreadHeartbeat: typeof ThreadHeartbeat
  }
  const errors: unknown[] = []
  const renewing = { place: NOWHERE, leaseMs: 900, timeoutMs: 300 }
  const onError = (error: unknown) => errors.push(error)
  const host = new Built(renewing, { onLost() {}, onCancel() {}, onError })
  onTestFinished(() => host.close())
  host.track([beat(1)])
  await vi.waitFor(() => expect(errors).not.toEqual([]), { timeout: 10_000 })
  expect(errors[0]).toMatchObject({
    code: 'E_STORE_UNAVAILABLE',
    hint: expect.stringContaining('Nothing listens there'),
    details: { cause: 'ECONNREFUSED' },
  })
  expect(new HeartbeatFailed(errors[0])).toMatchObject({
    code: 'E_HEARTBEAT_FAILED',
    message: expect.stringContaining('ECONNREFUSED 127.0.0.1:1'),
    details: { cause: 'ECONNREFUSED' },
  })
})

describe('the thread that renews leases', () => {
  const THREAD_LEASE_MS = 6000

  /** Jobs of a file that this process holds, and a built host with its thread. */
  async function held(count: number) {
    const folder = mkdtempSync(join(tmpdir(), 'pawl-heartbeat-'))
    const path = join(folder, 'jobs.db')
    const store = await openSqliteStore({ path })
    const command = () => ({ jobId: crypto.randomUUID(), type: 'long', queue: 'q' })
    const items = Array.from({ length: count }, () => ({
      lifecycle: standard,
      input: '{}',
      command: command(),
    }))
    await store.enqueue(items)
    const request = { worker: 'w', limit: count, leaseMs: THREAD_LEASE_MS, start: true }
    const claimed = await store.claim(request)
    const built = new URL('../../dist/engine/worker/heartbeat-thread.js', import.meta.url).href
    const { ThreadHeartbeat: Built } = (await import(built)) as {
      ThreadHeartbeat: typeof ThreadHeartbeat
    }
    const lost: unknown[] = []
    const place = placeOf(`sqlite:${path}`)
    const host = new Built(
      { place, leaseMs: THREAD_LEASE_MS, timeoutMs: undefined },
      { onLost: (one) => lost.push(one), onCancel() {}, onError() {} },
    )
    onTestFinished(async () => {
      await host.close()
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    })
    await vi.waitFor(() => expect(host.isReady).toBe(true), { timeout: 10_000 })
    const beats = claimed.map(({ ref, job }) => {
      return { ref, fence: { attempt: job.attempt, claim: job.execution?.claim ?? '' } }
    })
    return { store, host, lost, claimed, beats }
  }

  it('stores the progress of a lease that it has just been given', async () => {
    const { store, host, claimed, beats } = await held(1)
    host.track(beats)
    host.progress(beats[0]?.ref as Ref, '"half"')
    const id = claimed[0]?.job.id as string
    await vi.waitFor(async () => expect(await store.progress(id)).toBe('"half"'), {
      timeout: THREAD_LEASE_MS,
    })
  })

  it('renews more leases than it had room for, and none that has ended', async () => {
    // More than the memory that it starts with has entries.
    const { store, host, lost, claimed, beats } = await held(150)
    const [ended, ...running] = beats as [Beat, ...Beat[]]
    host.track(beats)
    host.untrack([ended.ref])
    const untilOf = async (i: number) =>
      (await store.get(claimed[i]?.job.id as string))?.execution?.leaseUntil as number
    const [first, last] = [await untilOf(0), await untilOf(149)]
    await vi.waitFor(async () => expect(await untilOf(149)).toBeGreaterThan(last), {
      timeout: THREAD_LEASE_MS,
    })
    expect(await untilOf(0)).toBe(first)
    host.untrack(running.map(({ ref }) => ref))
    expect(lost).toEqual([])
  })
})

describe('a store that cannot be asked', () => {
  it('is asked every five seconds at most, however much progress there is to tell', async () => {
    const { host, asked, pass } = hosted(away)
    host.track([beat(1), beat(2)])
    for (let second = 0; second < 29; second++) {
      host.progress(1, JSON.stringify(second))
      await pass(1000)
    }
    const distances = asked.slice(1).map((at, i) => at - (asked[i] as number))
    expect(asked.length).toBeGreaterThanOrEqual(4)
    expect(Math.min(...distances)).toBeGreaterThanOrEqual(5000)
    await host.close()
  })
})

describe('an attempt whose lease cannot be renewed', () => {
  const beatless = (isAway: () => boolean) => (store: Store) =>
    new Proxy(store, {
      get(target, name: keyof Store) {
        const value = target[name] as unknown
        if (typeof value !== 'function') return value
        const verb = value.bind(target) as (...values: unknown[]) => unknown
        return (...values: unknown[]) =>
          name === 'heartbeat' && isAway() ? away() : verb(...values)
      },
    })

  it('is aborted with LeaseLost, frees its slot, and can commit nothing any more', async () => {
    let isAway = false
    const reasons: unknown[] = []
    const refused: unknown[] = []
    const job = defineJob({
      name: 'cut off',
      retry: { max: 0 },
      crashesMax: 0,
      run: async ({ signal, commit }) => {
        await untilAborted(reasons)
          .run({ signal })
          .catch(() => {})
        await commit(() => 'too late').catch((error: unknown) => refused.push(error))
      },
    })
    const bench = await EngineBench.open(
      [job],
      beatless(() => isAway),
    )
    const worker = await bench.work({ lease: LEASE_MS })
    const handle = await bench.pawl.enqueue(job, null)
    await bench.until(async () => (await bench.state(handle.id)) === 'running')
    isAway = true
    const start = bench.environment.clock.now()
    await bench.until(() => reasons.length > 0, 100)
    expect(reasons[0]).toBeInstanceOf(LeaseLost)
    expect(bench.environment.clock.now() - start).toBeLessThanOrEqual(LEASE_MS)
    await bench.until(() => refused.length > 0 && worker.running === 0)
    expect(refused).toMatchObject([{ code: 'E_STALE_FENCE' }])
    expect(bench.events.filter(({ type }) => type === 'lost')).toHaveLength(1)
    expect(bench.events.filter(({ type }) => type === 'refused')).toMatchObject([
      { jobId: handle.id, command: 'commit', worker: worker.id },
    ])
    await bench.until(async () => (await bench.state(handle.id)) === 'quarantined', 100)
  })

  it('but that has finished is reported all the same, and its fence decides', async () => {
    let isAway = false
    let end: () => void = () => {}
    const job = defineJob({
      name: 'finished',
      run: () =>
        new Promise<string>((resolve) => {
          end = () => resolve('kept')
        }),
    })
    const bench = await EngineBench.open(
      [job],
      beatless(() => isAway),
    )
    await bench.work({ lease: LEASE_MS })
    const handle = await bench.pawl.enqueue(job, null)
    await bench.until(async () => (await bench.state(handle.id)) === 'running')
    isAway = true
    await bench.pass(LEASE_MS - 2000, 100)
    end()
    expect(await bench.finish(handle.result())).toMatchObject({ kind: 'succeeded', output: 'kept' })
    await bench.pass(LEASE_MS, 100)
    expect(bench.events.filter(({ type }) => type === 'lost')).toEqual([])
  })
})
