// The eleven states of the worker loop (R3): what the worker does while it is in each, and
// what makes it leave. On both databases, under a time that the test owns.
import { defineJob, Terminal } from 'pawl'
import { task, viewOf, workerMachine } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { StoreUnavailable } from '../../src/stores/errors.ts'
import { STORES } from '../stores/examined-stores.ts'
import { EngineOnStore } from './engine-on-store.ts'

const LEASE_MS = 30_000

const plain = defineJob({
  name: 'plain',
  lifecycle: task,
  notify: true,
  run: ({ input, count }) => {
    count('pages', 2)
    return input
  },
})
const broken = defineJob({
  name: 'broken',
  lifecycle: task,
  notify: true,
  run: () => {
    throw new Terminal('no such file')
  },
})

/** The verbs of the loop; periodic checks beside it call others. */
const LOOP_VERBS: readonly string[] = [
  ...['claim', 'recover', 'promote', 'settle', 'heartbeat', 'nextDue', 'reportWorker'],
]

/** The verbs that were called in a state. */
const verbsIn = ({ calls }: EngineOnStore, state: string) =>
  new Set(calls.filter((call) => call.state === state).map(({ verb }) => verb))

/** The states to which the worker went from a state. */
const waysOut = ({ trace }: EngineOnStore, state: string) =>
  new Set(trace.filter((step) => step.startsWith(`${state} → `)).map((step) => step.split(' ')[2]))

/** How many notices of ends are in the outbox. */
async function noticesOf({ examined }: EngineOnStore): Promise<number> {
  const rows = await examined.sql("SELECT count(*) AS n FROM @outbox WHERE name = 'pawl.notify'")
  return Number(rows[0]?.n)
}

const endedOf = async ({ store }: EngineOnStore) => (await store.counts()).lanes.ended

describe.each(STORES)('a worker on $name', ({ open }) => {
  it('Startup: calls no verb before the loop, and leaves for Connecting at once', async () => {
    const engine = await EngineOnStore.open(open, [plain])
    await engine.work()
    await engine.until(() => engine.trace.length >= 3)
    expect(engine.trace[0]).toBe('Startup → Connecting')
    expect(verbsIn(engine, 'Startup')).toEqual(new Set())
    expect(waysOut(engine, 'Startup')).toEqual(new Set(['Connecting']))
  })

  it('Connecting: reaches its store; leaves for Recovery, or for ErrorWait', async () => {
    const engine = await EngineOnStore.open(open, [plain])
    let isAway = true
    engine.onCall = () => {
      if (isAway) throw new StoreUnavailable(0, 'away')
    }
    await engine.work()
    await engine.until(() => engine.state === 'ErrorWait')
    expect(engine.trace).toEqual(['Startup → Connecting', 'Connecting → ErrorWait'])
    isAway = false
    await engine.until(() => engine.trace.includes('Connecting → Recovery'))
    expect(engine.trace.slice(2, 4)).toEqual(['ErrorWait → Connecting', 'Connecting → Recovery'])
    expect(verbsIn(engine, 'Connecting')).toContain('reportWorker')
  })

  it('Recovery: takes back what others lost, at intervals; leaves for Polling', async () => {
    const foreign = defineJob({ name: 'foreign', lifecycle: task })
    const engine = await EngineOnStore.open(open, [plain, foreign])
    const { id } = await engine.pawl.enqueue(foreign, null)
    await engine.store.claim({ worker: 'silent', limit: 1, leaseMs: LEASE_MS, start: true })
    await engine.work({ recover: '7s' })
    await engine.until(async () => (await engine.store.get(id))?.state === 'pending')
    expect((await engine.store.facts(id)).at(-1)).toMatchObject({
      trigger: 'expire',
      from: 'running',
      to: 'pending',
    })
    const recoveries = engine.calls.filter(({ verb }) => verb === 'recover')
    expect(new Set(recoveries.map(({ state }) => state))).toEqual(new Set(['Recovery']))
    // Virtual time also passes while a database answers, so a gap is only about the interval.
    const times = recoveries.map(({ at }) => at)
    for (const [i, at] of times.slice(1).entries()) {
      expect(at - (times[i] as number)).toBeGreaterThanOrEqual(3500)
    }
    expect(waysOut(engine, 'Recovery')).toEqual(new Set(['Polling']))
  })

  it('Polling: claims in no other state; leaves for Claiming, Backoff or Recovery', async () => {
    const engine = await EngineOnStore.open(open, [plain])
    await engine.work()
    await engine.until(() => engine.trace.includes('Polling → Backoff'))
    await engine.pawl.enqueue(plain, 1)
    await engine.until(async () => (await endedOf(engine)) === 1)
    await engine.pass(10_000)
    const claims = engine.calls.filter(({ verb }) => verb === 'claim')
    expect(new Set(claims.map(({ state }) => state))).toEqual(new Set(['Polling']))
    expect(waysOut(engine, 'Polling')).toContain('Claiming')
    expect(waysOut(engine, 'Polling')).toContain('Backoff')
    for (const state of waysOut(engine, 'Polling')) {
      expect(['Claiming', 'Backoff', 'Recovery']).toContain(state)
    }
  })

  // How long the sleeps are is in 003-engine.test.ts. Here virtual time also passes while a
  // database answers, so they cannot be measured.
  it('Backoff: is entered each time that nothing was found; leaves for Idle', async () => {
    const engine = await EngineOnStore.open(open, [plain])
    await engine.work({ poll: '5s', recover: '1h' })
    const entries = () => engine.trace.filter((step) => step === 'Polling → Backoff').length
    await engine.until(() => entries() >= 5, 50)
    expect(engine.trace.filter((step) => step.endsWith('→ Backoff'))).toHaveLength(entries())
    expect(waysOut(engine, 'Backoff')).toEqual(new Set(['Idle']))
  })

  it('Idle: asks for no work while it sleeps; leaves for Connecting', async () => {
    const engine = await EngineOnStore.open(open, [plain])
    await engine.work({ poll: '5s', recover: '1h' })
    await engine.until(() => engine.trace.includes('Idle → Connecting'))
    await engine.pass(20_000)
    expect(LOOP_VERBS.filter((verb) => verbsIn(engine, 'Idle').has(verb))).toEqual([])
    expect(waysOut(engine, 'Idle')).toEqual(new Set(['Connecting']))
  })

  it('Claiming: its task is running under a lease of its own; leaves for Processing', async () => {
    const engine = await EngineOnStore.open(open, [plain])
    const { id } = await engine.pawl.enqueue(plain, 1)
    await engine.work({ id: 'w1', lease: LEASE_MS })
    await engine.until(async () => (await endedOf(engine)) === 1)
    expect(engine.trace.filter((step) => step.includes('Claiming'))).toEqual([
      'Polling → Claiming',
      'Claiming → Processing',
    ])
    const claim = (await engine.store.facts(id)).find(({ trigger }) => trigger === 'claim')
    expect(claim).toMatchObject({ from: 'pending', to: 'running' })
    expect(claim?.execution).toMatchObject({
      worker: 'w1',
      leaseUntil: (claim?.at ?? 0) + LEASE_MS,
    })
  })

  it('Processing: its handler runs, with the lease renewed; leaves when it ends', async () => {
    const ends: (() => void)[] = []
    const lasting = defineJob({
      name: 'lasting',
      lifecycle: task,
      run: () => new Promise<void>((resolve) => void ends.push(resolve)),
    })
    const engine = await EngineOnStore.open(open, [lasting])
    const { id } = await engine.pawl.enqueue(lasting, null)
    await engine.work({ lease: LEASE_MS })
    await engine.until(() => ends.length === 1)
    await engine.pass(3 * LEASE_MS, 50)
    expect(engine.state).toBe('Processing')
    const view = viewOf(task, (await engine.store.get(id)) as never) as Record<string, unknown>
    expect(view).toMatchObject({ status: 'running', try_count: 1 })
    ends[0]?.()
    await engine.until(async () => (await endedOf(engine)) === 1)
    expect(waysOut(engine, 'Processing')).toEqual(new Set(['ReportingSuccess']))
  })

  it('ReportingSuccess: done, usage and notice are in one step; leaves for Polling', async () => {
    const engine = await EngineOnStore.open(open, [plain])
    const { id } = await engine.pawl.enqueue(plain, { page: 1 })
    await engine.work()
    await engine.until(async () => (await endedOf(engine)) === 1)
    await engine.until(() => waysOut(engine, 'ReportingSuccess').size > 0)
    expect(verbsIn(engine, 'ReportingSuccess')).toContain('settle')
    expect(waysOut(engine, 'ReportingSuccess')).toEqual(new Set(['Polling']))
    const facts = await engine.store.facts(id)
    expect(facts.at(-1)).toMatchObject({ from: 'running', to: 'done', usage: { pages: 2 } })
    expect(await noticesOf(engine)).toBe(1)
  })

  it('ReportingFailure: error and exception are in one step; leaves for Polling', async () => {
    const engine = await EngineOnStore.open(open, [broken])
    const { id } = await engine.pawl.enqueue(broken, null)
    await engine.work()
    await engine.until(async () => (await endedOf(engine)) === 1)
    await engine.until(() => waysOut(engine, 'ReportingFailure').size > 0)
    expect(verbsIn(engine, 'ReportingFailure')).toContain('settle')
    expect(waysOut(engine, 'ReportingFailure')).toEqual(new Set(['Polling']))
    const view = viewOf(task, (await engine.store.get(id)) as never)
    expect(view).toMatchObject({ status: 'error', error: expect.stringContaining('no such file') })
    expect(await noticesOf(engine)).toBe(1)
  })

  it('ErrorWait: asks for nothing for five seconds; leaves for Connecting', async () => {
    const engine = await EngineOnStore.open(open, [plain])
    await engine.work()
    await engine.until(() => engine.state === 'Idle')
    let isAway = true
    engine.onCall = () => {
      if (isAway) throw new StoreUnavailable(0, 'away')
    }
    await engine.until(() => engine.state === 'ErrorWait')
    const from = engine.store.now()
    isAway = false
    const before = engine.calls.length
    await engine.until(() => engine.state !== 'ErrorWait', 10)
    expect(engine.store.now() - from).toBeGreaterThanOrEqual(5000 - 100)
    const during = engine.calls.slice(before).filter(({ state }) => state === 'ErrorWait')
    expect(during.filter(({ verb }) => LOOP_VERBS.includes(verb))).toEqual([])
    expect(waysOut(engine, 'ErrorWait')).toEqual(new Set(['Connecting']))
  })

  it('takes documented edges only, whatever happens', async () => {
    const engine = await EngineOnStore.open(open, [plain, broken])
    await engine.pawl.enqueue(plain, 1)
    await engine.pawl.enqueue(broken, 1)
    await engine.work()
    await engine.until(async () => (await endedOf(engine)) === 2)
    await engine.until(() => engine.state === 'Idle')
    const edges = new Set(workerMachine.edges.map(({ from, to }) => `${from} → ${to}`))
    expect(engine.trace.filter((step) => !edges.has(step))).toEqual([])
  })
})
