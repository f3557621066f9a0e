// R3's loop around a real store: what a worker does with jobs, and what it survives.
import { StaleFence, Terminal } from 'pawl'
import { checkFacts, standard, workerMachine } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { defineJob } from '../../src/engine/define-job.ts'
import { InputInvalid, ShuttingDown } from '../../src/engine/errors.ts'
import type { Schema } from '../../src/engine/schema.ts'
import { workerOf } from '../../src/stores/worker-info.ts'
import { EngineBench, untilAborted } from './bench.ts'

const echo = defineJob({ name: 'echo', run: ({ input }) => input })

describe('a worker', () => {
  it('runs a job and returns its result to the caller that waits for it', async () => {
    const bench = await EngineBench.open([echo])
    await bench.work()
    const job = await bench.pawl.enqueue(echo, { hello: ['world', 1] })
    const outcome = await bench.finish(job.result())
    expect(outcome).toMatchObject({ kind: 'succeeded', output: { hello: ['world', 1] } })
  })

  it('with one slot goes through the states of R3 in their order', async () => {
    const bench = await EngineBench.open([echo])
    const job = await bench.pawl.enqueue(echo, 1)
    await bench.work()
    await bench.finish(job.result())
    await bench.until(() => bench.trace.includes('Idle → Connecting'))
    expect(bench.trace.slice(0, 10)).toEqual([
      'Startup → Connecting',
      'Connecting → Recovery',
      'Recovery → Polling',
      'Polling → Claiming',
      'Claiming → Processing',
      'Processing → ReportingSuccess',
      'ReportingSuccess → Polling',
      'Polling → Backoff',
      'Backoff → Idle',
      'Idle → Connecting',
    ])
  })

  it('moves along the edges of its machine only, and ends in Stopped', async () => {
    const bench = await EngineBench.open([echo])
    const worker = await bench.work({ concurrency: 3 })
    await bench.pawl.enqueueMany(
      echo,
      Array.from({ length: 20 }, (_, input) => ({ input })),
    )
    await bench.until(async () => (await bench.store.counts()).lanes.ended === 20)
    await bench.finish(worker.stop())
    const edges = new Set(workerMachine.edges.map(({ from, to }) => `${from} → ${to}`))
    expect(bench.trace.filter((step) => !edges.has(step))).toEqual([])
    expect(new Set(worker.states)).toEqual(new Set(['Stopped']))
  })

  it('never runs more jobs at once than it has slots', async () => {
    let now = 0
    let most = 0
    const ends: (() => void)[] = []
    const slow = defineJob({
      name: 'slow',
      run: async () => {
        most = Math.max(most, ++now)
        await new Promise<void>((resolve) => ends.push(resolve))
        now--
      },
    })
    const bench = await EngineBench.open([slow])
    await bench.work({ concurrency: 3 })
    await bench.pawl.enqueueMany(
      slow,
      Array.from({ length: 10 }, () => ({ input: null })),
    )
    await bench.until(async () => {
      ends.shift()?.()
      return (await bench.store.counts()).lanes.ended === 10
    })
    expect(most).toBe(3)
  })

  it('takes queues in the order asked for, and leaves others alone', async () => {
    const ran: string[] = []
    const jobs = ['a', 'b', 'c'].map((queue) =>
      defineJob({ name: queue, queue, run: () => void ran.push(queue) }),
    )
    const bench = await EngineBench.open(jobs)
    for (const job of jobs) await bench.pawl.enqueue(job, null)
    await bench.work({ queues: ['c', 'a'] })
    await bench.until(async () => (await bench.store.counts()).lanes.ended === 2)
    expect(ran).toEqual(['c', 'a'])
    expect((await bench.store.counts()).lanes.ready).toBe(1)
  })

  it('leaves kinds of job that it does not know where they are', async () => {
    const other = defineJob({ name: 'other' })
    const bench = await EngineBench.open([echo, other])
    const unknown = await bench.pawl.enqueue(other, null)
    const known = await bench.pawl.enqueue(echo, null)
    await bench.work()
    await bench.finish(known.result())
    expect(await bench.state(unknown.id)).toBe('queued')
  })

  it('starts a delayed job when it is due, and not before', async () => {
    const bench = await EngineBench.open([echo])
    await bench.work()
    const start = bench.store.now()
    const job = await bench.pawl.enqueue(echo, 1, { delay: '1m' })
    const outcome = await bench.finish(job.result())
    const startedAt = outcome.job.startedAt as number
    expect(startedAt - start).toBeGreaterThanOrEqual(60_000)
    expect(startedAt - start).toBeLessThan(60_100)
  })
})

describe('failures', () => {
  it('are retried after their delay, never early, and then succeed', async () => {
    const flaky = defineJob({
      name: 'flaky',
      retry: { max: 3, delay: '1s', jitter: 0 },
      run: ({ attempt }) => {
        if (attempt < 3) throw new Error(`attempt ${attempt}`)
        return attempt
      },
    })
    const bench = await EngineBench.open([flaky])
    await bench.work()
    const job = await bench.pawl.enqueue(flaky, null)
    expect(await bench.finish(job.result())).toMatchObject({ kind: 'succeeded', output: 3 })
    const facts = await bench.store.facts(job.id)
    expect(checkFacts(standard, facts)).toEqual([])
    const claims = facts.filter(({ trigger }) => trigger === 'claim').map(({ at }) => at)
    expect(claims).toHaveLength(3)
    for (const [i, at] of claims.slice(1).entries()) {
      expect(at - (claims[i] as number)).toBeGreaterThanOrEqual(1000)
    }
  })

  it('that no retry cures end the job at once', async () => {
    const broken = defineJob({
      name: 'broken',
      run: () => {
        throw new Terminal('no such customer')
      },
    })
    const bench = await EngineBench.open([broken])
    await bench.work()
    const job = await bench.pawl.enqueue(broken, null)
    const outcome = await bench.finish(job.result())
    expect(outcome.kind).toBe('failed')
    expect(outcome.job.attempt).toBe(1)
  })

  it('of two thousand jobs at one moment are retried spread over time', async () => {
    const failing = defineJob({
      name: 'failing',
      retry: { max: 1, delay: '20s', jitter: 1 },
      run: ({ attempt }) => {
        if (attempt === 1) throw new Error('all at once')
      },
    })
    const bench = await EngineBench.open([failing])
    const jobs = Array.from({ length: 2000 }, () => ({ input: null }))
    await bench.pawl.enqueueMany(failing, jobs)
    await bench.work({ concurrency: 500 })
    await bench.until(async () => (await bench.store.counts()).lanes.waiting === 2000, 0)
    const { items } = await bench.store.list({ lane: 'waiting' }, { limit: 1000 })
    const seconds = new Map<number, number>()
    for (const { runAt } of items) {
      const second = Math.floor((runAt as number) / 1000)
      seconds.set(second, (seconds.get(second) ?? 0) + 1)
    }
    expect(Math.max(...seconds.values())).toBeLessThanOrEqual(items.length / 10)
    const delays = items.map(({ runAt, updatedAt }) => (runAt as number) - updatedAt)
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(20_000)
    expect(Math.max(...delays)).toBeLessThanOrEqual(40_000)
  })

  it('of an input that its schema refuses count as an attempt and park the job', async () => {
    const even: Schema<number> = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: (value) =>
          strict && (value as number) % 2 === 1
            ? { issues: [{ message: 'must be even', path: ['n'] }] }
            : { value: value as number },
      },
    }
    let strict = true
    const job = defineJob({ name: 'even', input: even, run: ({ input }) => input })
    const bench = await EngineBench.open([job])
    await expect(bench.pawl.enqueue(job, 3)).rejects.toThrow(InputInvalid)
    expect((await bench.store.counts()).lanes.ready).toBe(0)
    strict = false
    const handle = await bench.pawl.enqueue(job, 3)
    strict = true
    await bench.work()
    const outcome = await bench.finish(handle.result())
    expect(outcome).toMatchObject({ kind: 'parked', reason: 'invalid_input' })
    expect(outcome.job.attempt).toBe(1)
  })

  it('to store a result are no failures of the work, and say where', async () => {
    const bad = defineJob({ name: 'bad', run: (): unknown => ({ when: () => 1 }) })
    const bench = await EngineBench.open([bad])
    await bench.work()
    const handle = await bench.pawl.enqueue(bad, null)
    const error = await bench.finish(handle.result().catch((thrown: unknown) => thrown))
    expect(error).toMatchObject({ code: 'E_RESULT_NOT_STORED', details: { path: '$.when' } })
    expect(await handle.get()).toMatchObject({ outcome: 'succeeded', attempt: 1 })
  })
})

describe('stopping', () => {
  it('waits for what runs, takes nothing new, and leaves no row of the worker', async () => {
    const ends: (() => void)[] = []
    const job = defineJob({
      name: 'running',
      run: () => new Promise<void>((resolve) => void ends.push(resolve)),
    })
    const bench = await EngineBench.open([job])
    const worker = await bench.work()
    const [first, second] = [await bench.pawl.enqueue(job, 1), await bench.pawl.enqueue(job, 2)]
    await bench.until(() => ends.length === 1)
    expect(await bench.store.listWorkers()).toHaveLength(1)
    const stopping = worker.stop()
    await bench.until(() => worker.states[0] === 'Processing')
    ends[0]?.()
    await bench.finish(stopping)
    expect(await bench.state(first.id)).toBe('succeeded')
    expect(await bench.state(second.id)).toBe('queued')
    expect(await bench.store.listWorkers()).toEqual([])
  })

  it('shows to others whether it is idle, working or draining, and that it is alive', async () => {
    const ends: (() => void)[] = []
    const job = defineJob({
      name: 'long',
      run: () => new Promise<void>((resolve) => void ends.push(resolve)),
    })
    const bench = await EngineBench.open([job])
    const worker = await bench.work()
    const shown = async () => {
      const [row] = await bench.store.listWorkers()
      return row && workerOf(row, bench.store.now()).activity
    }
    await bench.until(async () => (await shown()) === 'idle')
    await bench.pawl.enqueue(job, 1)
    await bench.until(() => ends.length === 1)
    await bench.pass(2000)
    expect(await shown()).toBe('working')
    const stopping = worker.stop()
    await bench.until(async () => (await shown()) === 'draining')
    await bench.pass(20_000)
    expect(await shown()).toBe('draining')
    ends[0]?.()
    await bench.finish(stopping)
    expect(await shown()).toBe(undefined)
  })

  it('gives back at no cost what has not finished in time', async () => {
    const reasons: unknown[] = []
    const job = defineJob({ name: 'unfinished', ...untilAborted(reasons) })
    const bench = await EngineBench.open([job])
    const worker = await bench.work({ drain: '10s' })
    const handle = await bench.pawl.enqueue(job, null)
    await bench.until(async () => (await bench.state(handle.id)) === 'running')
    await bench.finish(worker.stop())
    expect(reasons[0]).toBeInstanceOf(ShuttingDown)
    const after = await handle.get()
    expect(after).toMatchObject({ state: 'queued', failures: 0, crashes: 0, releases: 1 })
  })

  it('does not wait for a handler that ignores its signal', async () => {
    const job = defineJob({ name: 'deaf', run: () => new Promise<void>(() => {}) })
    const bench = await EngineBench.open([job])
    const worker = await bench.work({ drain: '10s' })
    const handle = await bench.pawl.enqueue(job, null)
    await bench.until(async () => (await bench.state(handle.id)) === 'running')
    const start = bench.environment.clock.now()
    await bench.finish(worker.stop())
    expect(bench.environment.clock.now() - start).toBeLessThan(20_000)
    expect(await bench.state(handle.id)).toBe('queued')
  })

  it('a second time does not wait for the handlers any longer', async () => {
    const job = defineJob({ name: 'slow', ...untilAborted([]) })
    const bench = await EngineBench.open([job])
    const worker = await bench.work({ drain: '1h' })
    const handle = await bench.pawl.enqueue(job, null)
    await bench.until(async () => (await bench.state(handle.id)) === 'running')
    const start = bench.environment.clock.now()
    await bench.finish(Promise.all([worker.stop(), worker.stop()]))
    expect(bench.environment.clock.now() - start).toBeLessThan(10_000)
    expect(await bench.state(handle.id)).toBe('queued')
  })
})

describe('two workers', () => {
  it('share the jobs, and run each once', async () => {
    const ran = new Map<string, number>()
    const job = defineJob({
      name: 'shared',
      run: ({ jobId }) => void ran.set(jobId, (ran.get(jobId) ?? 0) + 1),
    })
    const bench = await EngineBench.open([job])
    await Promise.all([bench.work({ concurrency: 4 }), bench.work({ concurrency: 4 })])
    await bench.pawl.enqueueMany(
      job,
      Array.from({ length: 100 }, () => ({ input: null })),
    )
    await bench.until(async () => (await bench.store.counts()).lanes.ended === 100)
    expect([...ran.values()]).toEqual(Array.from({ length: 100 }, () => 1))
  })

  it('take a job back within its lease and two seconds after its worker is gone (P7)', async () => {
    const bench = await EngineBench.open([echo])
    const handle = await bench.pawl.enqueue(echo, 1)
    await bench.store.claim({ worker: 'gone', limit: 1, leaseMs: 30_000, start: true })
    const start = bench.store.now()
    await bench.work()
    await bench.finish(handle.result())
    const facts = await bench.store.facts(handle.id)
    const expired = facts.find(({ trigger }) => trigger === 'expire')
    expect((expired?.at ?? 0) - start).toBeGreaterThanOrEqual(30_000)
    expect((expired?.at ?? Number.POSITIVE_INFINITY) - start).toBeLessThanOrEqual(32_000)
  })

  it('take over from one that went silent, and its late report is refused', async () => {
    const job = defineJob({
      name: 'taken',
      retry: { max: 1, delay: 0 },
      run: ({ attempt }) => attempt,
    })
    const bench = await EngineBench.open([job])
    const handle = await bench.pawl.enqueue(job, null)
    const request = { worker: 'silent', limit: 1, leaseMs: 5000, start: true }
    const [held] = await bench.store.claim(request)
    await bench.work()
    expect(await bench.finish(handle.result())).toMatchObject({ kind: 'succeeded', output: 2 })
    const fence = { attempt: 1, claim: held?.job.execution?.claim ?? '' }
    const late = {
      held: held as NonNullable<typeof held>,
      command: { kind: 'commit', fence } as const,
    }
    const { answers } = await bench.store.settle([late])
    expect(answers[0]).toMatchObject({ kind: 'rejected', error: expect.any(StaleFence) })
  })
})
