// R3 (worker loop) through the real engine: its tasks and its worker on a store, in virtual time.
import { defineJob, Terminal } from 'pawl'
import { checkFacts, type Fact, task, viewOf, workerMachine } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import type { Store } from '../../src/stores/contract/store.ts'
import { StoreUnavailable } from '../../src/stores/errors.ts'
import { EngineBench } from '../engine/bench.ts'
import { wayOf } from './played-job.ts'

const OPERATOR = { actor: 'operator', operator: 'ann', note: 'the cause is mended' } as const
const LEASE_MS = 30_000
/** How far the tests move the time at once; nothing happens in between. */
const STEP_MS = 5

const plain = defineJob({ name: 'plain', lifecycle: task, run: ({ input }) => input })
const broken = defineJob({
  name: 'broken',
  lifecycle: task,
  run: () => {
    throw new Error('no such file')
  },
})

/** A kind of task whose handlers go on until the test ends them. */
function lasting() {
  const ends: (() => void)[] = []
  const job = defineJob({
    name: 'lasting',
    lifecycle: task,
    run: () => new Promise<void>((resolve) => void ends.push(resolve)),
  })
  return { job, ends }
}

/** A store that tells of every call, and may fail it. */
function tapped(onCall: (verb: string, at: number) => void) {
  return (store: Store): Store =>
    new Proxy(store, {
      get(target, name: keyof Store) {
        const value: unknown = target[name]
        if (typeof value !== 'function') return value
        const verb = value.bind(target) as (...values: unknown[]) => unknown
        if (name === 'now' || name === 'onWake' || name === 'close') return verb
        return async (...values: unknown[]) => {
          onCall(String(name), target.now())
          return verb(...values)
        }
      },
    })
}

/** The times at which a verb was called. */
function timesOf(verb: keyof Store) {
  const times: number[] = []
  const tap = tapped((called, at) => {
    if (called === verb) times.push(at)
  })
  return { times, tap }
}

function gapsOf(times: readonly number[]): number[] {
  return times.slice(1).map((at, i) => at - (times[i] as number))
}

/** Moves the time on by this much. */
async function pass(bench: EngineBench, ms: number): Promise<void> {
  const end = bench.environment.clock.now() + ms
  await bench.until(() => bench.environment.clock.now() >= end, STEP_MS)
}

/** Claims what is ready for a worker that never says anything again. */
async function claimInSilence(store: Store, limit = 1): Promise<void> {
  const request = { worker: 'silent', limit, leaseMs: LEASE_MS, start: true }
  expect(await store.claim(request)).toHaveLength(limit)
}

async function factOf(store: Store, id: string, trigger: Fact['trigger']): Promise<Fact> {
  const fact = (await store.facts(id)).find((one) => one.trigger === trigger)
  if (fact === undefined) throw new Error(`there is no fact ${trigger}`)
  return fact
}

/** Taken back when its lease had expired, and within two seconds of that. */
function expectInTime({ at, execution }: Fact): void {
  const late = at - (execution?.leaseUntil ?? Number.NaN)
  expect(late).toBeGreaterThanOrEqual(0)
  expect(late).toBeLessThanOrEqual(2000)
}

async function waysOf(store: Store, id: string): Promise<string[]> {
  const facts = await store.facts(id)
  expect(checkFacts(task, facts)).toEqual([])
  return facts.slice(1).map(wayOf)
}

describe('a task', () => {
  it('is done after one round of its worker, and is not picked up again', async () => {
    const bench = await EngineBench.open([plain])
    const handle = await bench.pawl.enqueue(plain, { page: 1 })
    expect(viewOf(task, await handle.get())).toMatchObject({ status: 'pending', try_count: 0 })
    await bench.work()
    expect(await bench.finish(handle.result())).toMatchObject({ output: { page: 1 } })
    await pass(bench, 60_000)
    expect(await waysOf(bench.store, handle.id)).toEqual(['pending → running', 'running → done'])
    const view = viewOf(task, await handle.get())
    expect(view).toMatchObject({ status: 'done', try_count: 1, lease_owner: null, error: null })
    expect(bench.trace.filter((step) => step.includes('Claiming'))).toEqual([
      'Polling → Claiming',
      'Claiming → Processing',
    ])
  })

  it('that throws ends in error at once, and its worker goes on with the next', async () => {
    const bench = await EngineBench.open([plain, broken])
    const [bad, good] = [
      await bench.pawl.enqueue(broken, null),
      await bench.pawl.enqueue(plain, null),
    ]
    await bench.work()
    expect(await bench.finish(bad.result())).toMatchObject({ kind: 'failed' })
    expect(await bench.finish(good.result())).toMatchObject({ kind: 'succeeded' })
    expect(await waysOf(bench.store, bad.id)).toEqual(['pending → running', 'running → error'])
    const view = viewOf(task, await bad.get())
    expect(view).toMatchObject({ status: 'error', try_count: 1, error: 'Error: no such file' })
    expect(bench.trace.slice(3, 11)).toEqual([
      'Polling → Claiming',
      'Claiming → Processing',
      'Processing → ReportingFailure',
      'ReportingFailure → Polling',
      'Polling → Claiming',
      'Claiming → Processing',
      'Processing → ReportingSuccess',
      'ReportingSuccess → Polling',
    ])
  })

  it('in error runs again when an operator resets it, and not before', async () => {
    let isMended = false
    const job = defineJob({
      name: 'mendable',
      lifecycle: task,
      run: () => {
        if (!isMended) throw new Terminal('not yet')
        return 'mended'
      },
    })
    const bench = await EngineBench.open([job])
    await bench.work()
    const handle = await bench.pawl.enqueue(job, null)
    await bench.finish(handle.result())
    isMended = true
    await pass(bench, 60_000)
    expect(await bench.state(handle.id)).toBe('error')
    const [answer] = await bench.store.applyCommand([handle.id], { kind: 'redrive' }, OPERATOR)
    expect(answer?.kind).toBe('done')
    expect(await bench.finish(handle.result())).toMatchObject({ output: 'mended' })
    expect((await waysOf(bench.store, handle.id)).slice(2)).toEqual([
      'error → pending',
      'pending → running',
      'running → done',
    ])
  })

  it('whose workers all go silent is tried max_tries times, and ends in error', async () => {
    const foreign = defineJob({ name: 'foreign', lifecycle: task })
    const bench = await EngineBench.open([plain, foreign])
    const handle = await bench.pawl.enqueue(foreign, null)
    // It has no code for the task, so that it only takes it back from those who had.
    await bench.work()
    for (let tries = 1; tries <= 3; tries++) {
      await claimInSilence(bench.store)
      const view = viewOf(task, await handle.get())
      expect(view).toMatchObject({ status: 'running', try_count: tries, max_tries: 3 })
      await bench.until(async () => (await bench.state(handle.id)) !== 'running')
    }
    expect(await waysOf(bench.store, handle.id)).toEqual([
      'pending → running',
      'running → pending',
      'pending → running',
      'running → pending',
      'pending → running',
      'running → error',
    ])
    const view = viewOf(task, await handle.get())
    expect(view).toMatchObject({ status: 'error', lease_owner: null, lease_timeout: null })
  })
})

describe('recovery', () => {
  it('is done by another worker within the lease and two seconds', async () => {
    const bench = await EngineBench.open([plain])
    const handle = await bench.pawl.enqueue(plain, 'kept')
    await claimInSilence(bench.store)
    await Promise.all([bench.work({ id: 'one' }), bench.work({ id: 'two' })])
    expect(await bench.finish(handle.result())).toMatchObject({ output: 'kept' })
    expectInTime(await factOf(bench.store, handle.id, 'expire'))
    const claims = (await bench.store.facts(handle.id)).filter(({ trigger }) => trigger === 'claim')
    expect(claims.map(({ execution }) => execution?.worker)).toEqual([
      'silent',
      expect.stringMatching(/^(one|two)$/),
    ])
  })

  it('is done in time by a worker whose slots are all taken', async () => {
    const { job, ends } = lasting()
    const bench = await EngineBench.open([plain, job])
    await bench.pawl.enqueue(job, null)
    await bench.work()
    await bench.until(() => ends.length === 1)
    const handle = await bench.pawl.enqueue(plain, null)
    await claimInSilence(bench.store)
    await bench.until(async () => (await bench.state(handle.id)) !== 'running')
    expectInTime(await factOf(bench.store, handle.id, 'expire'))
    ends[0]?.()
    expect(await bench.finish(handle.result())).toMatchObject({ kind: 'succeeded' })
  })

  it('takes back in time everything that a large worker held', async () => {
    const foreign = defineJob({ name: 'foreign', lifecycle: task })
    const bench = await EngineBench.open([plain, foreign])
    const count = 1000
    const inputs = Array.from({ length: count }, (_, input) => ({ input }))
    const handles = await bench.pawl.enqueueMany(foreign, inputs)
    await claimInSilence(bench.store, count)
    await bench.work()
    await bench.until(async () => (await bench.store.counts()).lanes.held === 0)
    for (const { id } of handles) expectInTime(await factOf(bench.store, id, 'expire'))
  })

  it('is looked after once in each interval while there is nothing to do', async () => {
    const { times, tap } = timesOf('recover')
    const bench = await EngineBench.open([plain], tap)
    await bench.work({ recover: '7s', poll: '1s' })
    await pass(bench, 70_500)
    expect(times).toHaveLength(11)
    for (const gap of gapsOf(times)) {
      expect(gap).toBeGreaterThanOrEqual(7000)
      expect(gap).toBeLessThanOrEqual(7000 + STEP_MS)
    }
  })

  it('is looked after as often while a worker always finds work', async () => {
    const { times, tap } = timesOf('recover')
    const { job, ends } = lasting()
    const bench = await EngineBench.open([job], tap)
    const inputs = Array.from({ length: 80 }, (_, input) => ({ input }))
    await bench.pawl.enqueueMany(job, inputs)
    await bench.work({ recover: '7s' })
    await bench.until(() => ends.length > 0)
    for (let second = 0; second < 72; second++) {
      await pass(bench, 1000)
      ends.pop()?.()
      await bench.until(() => ends.length > 0)
    }
    expect(bench.trace).not.toContain('Polling → Backoff')
    expect(bench.trace.filter((step) => step === 'Polling → Recovery')).toHaveLength(10)
    expect(times).toHaveLength(11)
    for (const gap of gapsOf(times)) expect(gap).toBeLessThanOrEqual(7000 + 2 * STEP_MS)
    await bench.until(async () => {
      ends.pop()?.()
      return (await bench.store.counts()).lanes.ended === 80
    })
  })
})

describe('an idle worker', () => {
  it('asks less and less often, up to its longest sleep, and never in step', async () => {
    const { times, tap } = timesOf('claim')
    const bench = await EngineBench.open([plain], tap)
    await bench.work({ poll: '5s', recover: '1h' })
    await bench.until(() => times.length === 16, STEP_MS)
    const gaps = gapsOf(times)
    for (const [i, gap] of gaps.entries()) {
      const longest = Math.min(20 * 2 ** (i + 1), 5000)
      expect(gap).toBeGreaterThanOrEqual(longest / 2)
      expect(gap).toBeLessThanOrEqual(longest + STEP_MS)
    }
    expect(new Set(gaps.slice(8)).size).toBeGreaterThan(5)
  })

  it('is woken by new work at once, and asks often again afterwards', async () => {
    const { times, tap } = timesOf('claim')
    const bench = await EngineBench.open([plain], tap)
    await bench.work({ poll: '1h', recover: '1h' })
    await pass(bench, 60_000)
    const asked = times.length
    const handle = await bench.pawl.enqueue(plain, null)
    const { job } = await bench.finish(handle.result())
    expect((job.startedAt as number) - job.createdAt).toBeLessThanOrEqual(2 * STEP_MS)
    await pass(bench, 500)
    expect(times.length - asked).toBeGreaterThanOrEqual(5)
  })
})

describe('after an unexpected error', () => {
  const isAway = () => {
    throw new StoreUnavailable(0, 'away')
  }

  it('a worker sleeps five seconds, however often it is woken, and connects again', async () => {
    let away = true
    const tries: number[] = []
    const tap = tapped((verb, at) => {
      if (!away || verb === 'enqueue') return
      tries.push(at)
      isAway()
    })
    const bench = await EngineBench.open([plain], tap)
    // The rounds of the doctor keep a timetable of their own: test/doctor/rounds.test.ts.
    await bench.work({ checkup: false })
    await bench.until(() => bench.trace.includes('Connecting → ErrorWait'))
    const handle = await bench.pawl.enqueue(plain, null)
    for (let second = 0; second < 22; second++) {
      await bench.pawl.enqueue(plain, null)
      await pass(bench, 1000)
    }
    away = false
    expect(tries).toHaveLength(5)
    for (const gap of gapsOf(tries)) {
      expect(gap).toBeGreaterThanOrEqual(5000)
      expect(gap).toBeLessThanOrEqual(5000 + 2 * STEP_MS)
    }
    expect(await bench.finish(handle.result())).toMatchObject({ kind: 'succeeded' })
    expect(bench.trace.slice(0, 3)).toEqual([
      'Startup → Connecting',
      'Connecting → ErrorWait',
      'ErrorWait → Connecting',
    ])
  })

  it('a worker that is asked to stop does not sleep to the end', async () => {
    const bench = await EngineBench.open(
      [plain],
      tapped((verb) => {
        if (verb !== 'enqueue') isAway()
      }),
    )
    const worker = await bench.work()
    await bench.until(() => worker.states[0] === 'ErrorWait')
    const start = bench.environment.clock.now()
    await bench.finish(worker.stop())
    expect(bench.environment.clock.now() - start).toBeLessThan(100)
    expect(bench.trace.slice(-2)).toEqual(['ErrorWait → Draining', 'Draining → Stopped'])
  })
})

describe('a worker', () => {
  it('shows each documented state while it is in it, and takes documented edges only', async () => {
    const { job, ends } = lasting()
    let away = false
    const seen = new Set<string>()
    const tap = tapped((verb) => {
      for (const state of worker?.states ?? []) seen.add(`${verb} in ${state}`)
      if (away) throw new StoreUnavailable(0, 'away')
    })
    let worker: Awaited<ReturnType<EngineBench['work']>> | undefined
    const bench = await EngineBench.open([plain, broken, job], tap)
    worker = await bench.work()
    for (const one of [plain, broken, job]) await bench.pawl.enqueue(one, null)
    await bench.until(() => ends.length === 1)
    expect(worker.states).toEqual(['Processing'])
    ends[0]?.()
    await bench.until(async () => (await bench.store.counts()).lanes.ended === 3)
    await bench.until(() => worker?.states[0] === 'Idle')
    away = true
    await bench.until(() => worker?.states[0] === 'ErrorWait')
    away = false
    await bench.until(() => worker?.states[0] === 'Idle')
    await pass(bench, 10_000)
    await bench.finish(worker.stop())
    for (const one of ['reportWorker in Connecting', 'recover in Recovery', 'claim in Polling']) {
      expect(seen).toContain(one)
    }
    expect(seen).toContain('settle in ReportingSuccess')
    expect(seen).toContain('settle in ReportingFailure')
    expect(seen).toContain('nextDue in Backoff')
    const edges = new Set(workerMachine.edges.map(({ from, to }) => `${from} → ${to}`))
    expect(bench.trace.filter((step) => !edges.has(step))).toEqual([])
    const left = new Set(bench.trace.map((step) => step.split(' → ')[0]))
    const states = [...workerMachine.byTarget.keys()].filter((state) => state !== 'Stopped')
    expect([...left].sort()).toEqual(states.sort())
  })

  it('takes only tasks that it has code for, from the queues that it was given', async () => {
    const ran: string[] = []
    const jobOf = (name: string, queue: string) =>
      defineJob({ name, queue, lifecycle: task, run: () => void ran.push(name) })
    const mine = [jobOf('mine', 'reports'), jobOf('mine too', 'mails')]
    const elsewhere = jobOf('not my queue', 'other')
    const foreign = defineJob({ name: 'foreign', queue: 'reports', lifecycle: task })
    const bench = await EngineBench.open([...mine, elsewhere, foreign])
    const left = [
      await bench.pawl.enqueue(foreign, null),
      await bench.pawl.enqueue(elsewhere, null),
    ]
    for (const job of mine) await bench.pawl.enqueue(job, null)
    await bench.work({ queues: ['reports', 'mails'] })
    await bench.until(async () => (await bench.store.counts()).lanes.ended === 2)
    await pass(bench, 60_000)
    expect(ran).toEqual(['mine', 'mine too'])
    for (const handle of left) {
      expect(viewOf(task, await handle.get())).toMatchObject({ status: 'pending', try_count: 0 })
    }
  })
})

describe('usage numbers', () => {
  const usageOf = async (run: Parameters<typeof plain.implement>[0]) => {
    const job = defineJob({ name: 'counting', lifecycle: task }).implement(run)
    const bench = await EngineBench.open([job])
    await bench.work()
    const handle = await bench.pawl.enqueue(job, null)
    await bench.finish(handle.result())
    return (await bench.store.facts(handle.id)).at(-1)?.usage
  }

  it('stand on the fact of a success', async () => {
    const usage = await usageOf(({ count }) => {
      count('pages')
      count('pages', 2)
      count('tokens', 1500)
    })
    expect(usage).toEqual({ pages: 3, tokens: 1500 })
  })

  it('stand on the fact of a success that its handler committed', async () => {
    const usage = await usageOf(async ({ count, commit }) => {
      count('pages', 3)
      await commit(() => 'committed')
    })
    expect(usage).toEqual({ pages: 3 })
  })

  it('stand on the fact of a failure', async () => {
    const usage = await usageOf(({ count }) => {
      count('pages', 3)
      throw new Error('out of paper')
    })
    expect(usage).toEqual({ pages: 3 })
  })
})
