// R0 (hardening) through the real engine: how stalled jobs are found and recovered.
import { createPawl, defineJob, type WorkOptions } from 'pawl'
import { checkFacts, type Fact, hardened } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import type { Store } from '../../src/stores/contract/store.ts'
import { StoreUnavailable } from '../../src/stores/errors.ts'
import { EngineBench } from '../engine/bench.ts'
import { wayOf } from './played-job.ts'

const OPERATOR = { actor: 'operator', operator: 'ann', note: 'its machine is gone' } as const

/** A kind of job whose first attempt never ends. */
const stuck = (options: { recovery?: 'operator' } = {}) =>
  defineJob({
    ...options,
    name: 'stuck',
    lifecycle: hardened,
    run: ({ attempt }) => (attempt === 1 ? new Promise<never>(() => {}) : 'recovered'),
  })

/** A way to a store that is cut once something was claimed, until it is mended. */
function cutOff(store: Store): { way: Store; mend: () => void } {
  let isCut = false
  const mend = () => {
    isCut = false
  }
  const way = new Proxy(store, {
    get(target, name: keyof Store) {
      const value: unknown = target[name]
      if (typeof value !== 'function') return value
      const verb = value.bind(target) as (...values: unknown[]) => unknown
      if (['now', 'onWake', 'close'].includes(String(name))) return verb
      return async (...values: unknown[]) => {
        if (isCut) throw new StoreUnavailable(0, 'cut off')
        const answer = await verb(...values)
        if (name === 'claim' && (answer as unknown[]).length > 0) isCut = true
        return answer
      }
    },
  })
  return { way, mend }
}

/** A job that is running at a worker which nobody hears of any more. */
async function lost(options: { recovery?: 'operator' } = {}, work: WorkOptions = {}) {
  const job = stuck(options)
  const bench = await EngineBench.open([job])
  const { environment, store } = bench
  const { way, mend } = cutOff(store)
  const gone = await createPawl({ store: way, jobs: [job], environment })
  const handle = await bench.pawl.enqueue(job, null)
  const worker = await gone.work({ id: 'gone', concurrency: 1, drain: 0, ...work })
  await bench.until(async () => (await bench.state(handle.id)) === 'running')
  const [, claim] = await store.facts(handle.id)
  const end = () => {
    mend()
    return bench.finish(worker.stop())
  }
  return { bench, handle, end, leaseUntil: claim?.execution?.leaseUntil as number, at: claim?.at }
}

/** Steps of half the time between two renewals of a lease. */
const STEP_MS = 5000
const pass = (bench: EngineBench, ms: number) => bench.pass(ms, STEP_MS)

async function findFact(bench: EngineBench, id: string, trigger: Fact['trigger']) {
  return (await bench.store.facts(id)).filter((fact) => fact.trigger === trigger)
}

describe('a stalled job', () => {
  it('is found when its lease has expired, not before, and runs again after 60 s', async () => {
    const { bench, handle, end, leaseUntil } = await lost()
    await bench.work()
    await bench.until(() => bench.environment.clock.now() >= leaseUntil - 100)
    expect(await bench.state(handle.id)).toBe('running')
    await bench.until(async () => (await bench.state(handle.id)) !== 'running')
    const [found] = await findFact(bench, handle.id, 'expire')
    expect(found?.at).toBeLessThanOrEqual(leaseUntil + 2000)
    expect(wayOf(found as Fact)).toBe('running → failed → pending')
    expect(await bench.finish(handle.result())).toMatchObject({ output: 'recovered' })
    const facts = await bench.store.facts(handle.id)
    expect(checkFacts(hardened, facts)).toEqual([])
    const again = facts.filter(({ trigger }) => trigger === 'claim')[1]
    expect((again?.at ?? 0) - (found?.at ?? 0)).toBeGreaterThanOrEqual(60_000)
    await end()
  })

  it('is not one that runs for hours under a live lease', async () => {
    let finish: () => void = () => {}
    const job = defineJob({
      name: 'long',
      lifecycle: hardened,
      run: () =>
        new Promise<void>((resolve) => {
          finish = resolve
        }),
    })
    const bench = await EngineBench.open([job])
    await Promise.all([bench.work(), bench.work()])
    const handle = await bench.pawl.enqueue(job, null)
    await bench.until(async () => (await bench.state(handle.id)) === 'running')
    await pass(bench, 2 * 60 * 60_000)
    expect(await handle.get()).toMatchObject({ state: 'running', attempt: 1, stalled: false })
    finish()
    await bench.finish(handle.result())
    const triggers = (await bench.store.facts(handle.id)).map(({ trigger }) => trigger)
    expect(triggers).toEqual(['create', 'claim', 'commit'])
  })

  it('is waited for as long as the lease says, which can be set', async () => {
    for (const [lease, leaseMs] of [
      ['2s', 2000],
      ['10m', 600_000],
      ['30m', 1_800_000],
    ] as const) {
      const { bench, handle, end, at } = await lost({}, { lease })
      await bench.work()
      await pass(bench, Math.max(0, leaseMs - 2 * STEP_MS))
      expect(await bench.state(handle.id)).toBe('running')
      await bench.until(async () => (await bench.state(handle.id)) !== 'running', 500)
      const [found] = await findFact(bench, handle.id, 'expire')
      const waited = (found?.at ?? 0) - (at ?? 0)
      expect(waited).toBeGreaterThanOrEqual(leaseMs)
      expect(waited).toBeLessThanOrEqual(leaseMs + 2000)
      await end()
    }
  })

  it('is flagged and waits for an operator where its kind says so', async () => {
    const { bench, handle, end, leaseUntil } = await lost({ recovery: 'operator' })
    await Promise.all([bench.work(), bench.work()])
    await bench.until(async () => (await handle.get()).stalled)
    await pass(bench, 60 * 60_000)
    const stalls = await findFact(bench, handle.id, 'stall')
    expect(stalls).toHaveLength(1)
    expect(stalls[0]?.at).toBeLessThanOrEqual(leaseUntil + 2000)
    const { attempt, execution, state } = await handle.get()
    expect([state, attempt]).toEqual(['running', 1])
    const fence = { attempt, claim: execution?.claim ?? '' }
    const approved = { kind: 'expire', fence, approved: true } as const
    const [answer] = await bench.store.applyCommand([handle.id], approved, OPERATOR)
    expect(answer).toMatchObject({ kind: 'done', job: { state: 'pending', stalled: false } })
    expect(await bench.finish(handle.result())).toMatchObject({ output: 'recovered' })
    const [expired] = await findFact(bench, handle.id, 'expire')
    expect(expired).toMatchObject({ operator: 'ann', note: 'its machine is gone' })
    await end()
  })
})
