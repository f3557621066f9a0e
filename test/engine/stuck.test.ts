// Handlers that ignore their abort, and what a worker does about them.
import { describe, expect, it } from 'vitest'
import { defineJob } from '../../src/engine/define-job.ts'
import { WorkerStuck } from '../../src/engine/errors.ts'
import type { StuckEvent } from '../../src/engine/watching/events.ts'
import type { WorkOptions } from '../../src/engine/work-options.ts'
import { EngineBench } from './bench.ts'
import { KeptMetrics } from './logbook.ts'

const echo = defineJob({ name: 'echo', run: ({ input }) => input })

/** A worker with handlers that end when the test says so, and ignore everything else. */
async function withDeaf(options: WorkOptions = {}, metrics = new KeptMetrics()) {
  const ends: (() => void)[] = []
  const deaf = defineJob({
    name: 'deaf',
    timeout: '1s',
    retry: { max: 0 },
    run: () => new Promise<void>((resolve) => void ends.push(resolve)),
  })
  const bench = await EngineBench.open([deaf, echo], undefined, { metrics })
  const worker = await bench.work({ id: 'w', drain: '1s', ...options })
  const told = () => bench.events.filter((event): event is StuckEvent => event.type === 'stuck')
  const stick = async () => {
    const before = worker.stuck
    await bench.pawl.enqueue(deaf, null)
    await bench.until(() => worker.stuck > before, 100)
  }
  return { bench, worker, ends, told, stick }
}

describe('a handler that ignores its abort', () => {
  it('is reported after five seconds, then at doubled distances, with its duration', async () => {
    const { bench, told, stick } = await withDeaf()
    await stick()
    expect(told()).toEqual([])
    await bench.pass(80_000, 100)
    const seconds = told().map(({ forMs }) => Math.round(forMs / 1000))
    expect(seconds).toEqual([5, 15, 35, 75])
    expect(told()[0]).toMatchObject({ worker: 'w', stuck: 1, job: { type: 'deaf', attempt: 1 } })
  })

  it('is not reported if it ends in time', async () => {
    const { bench, worker, ends, told, stick } = await withDeaf()
    await stick()
    await bench.pass(4000, 100)
    ends[0]?.()
    await bench.until(() => worker.stuck === 0)
    await bench.pass(20_000, 100)
    expect(told()).toEqual([])
    expect(bench.events.some(({ type }) => type === 'unstuck')).toBe(false)
  })

  it('is shown by a gauge until it ends', async () => {
    const metrics = new KeptMetrics()
    const { bench, ends, told, stick } = await withDeaf({}, metrics)
    await stick()
    await bench.until(() => told().length === 1, 100)
    expect(metrics.shown('pawl_worker_stuck_slots')).toEqual({ w: 1 })
    ends[0]?.()
    await bench.until(() => bench.events.some(({ type }) => type === 'unstuck'))
    expect(metrics.shown('pawl_worker_stuck_slots')).toEqual({ w: 0 })
  })
})

describe('the policy for stuck handlers', () => {
  it('holds the slot if nothing is said', async () => {
    const { bench, worker, ends, stick } = await withDeaf()
    await stick()
    const next = await bench.pawl.enqueue(echo, 1)
    await bench.pass(60_000, 100)
    expect(await bench.state(next.id)).toBe('queued')
    expect(worker.states).toHaveLength(1)
    ends[0]?.()
    await bench.finish(next.result())
  })

  it('can replace the slot, and takes the new one back when the handler ends', async () => {
    const { bench, worker, ends, stick } = await withDeaf({ onStuck: 'replace' })
    await stick()
    const next = await bench.pawl.enqueue(echo, 1)
    await bench.finish(next.result())
    expect(worker.stuck).toBe(1)
    expect(worker.states).toHaveLength(2)
    ends[0]?.()
    await bench.until(() => worker.stuck === 0)
    expect(worker.states).toHaveLength(1)
    await bench.finish((await bench.pawl.enqueue(echo, 2)).result())
  })

  it('never opens more new slots than the worker has of its own', async () => {
    const { bench, worker, ends, told, stick } = await withDeaf({
      concurrency: 2,
      onStuck: 'replace',
    })
    for (let i = 0; i < 4; i++) await stick()
    await bench.until(() => new Set(told().map(({ job }) => job.id)).size === 4, 100)
    expect(worker.states).toHaveLength(4)
    const next = await bench.pawl.enqueue(echo, 1)
    await bench.pass(30_000, 100)
    expect(await bench.state(next.id)).toBe('queued')
    for (const end of ends) end()
    await bench.finish(next.result())
    expect(worker.states).toHaveLength(2)
  })

  it('can end the worker, which gives back what else it has and says why it ended', async () => {
    const waiting = defineJob({
      name: 'waiting',
      run: ({ signal }) =>
        new Promise<never>((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason))
        }),
    })
    const deaf = defineJob({
      name: 'deaf',
      timeout: '1s',
      retry: { max: 0 },
      run: () => new Promise<never>(() => {}),
    })
    const bench = await EngineBench.open([deaf, waiting])
    const worker = await bench.work({ concurrency: 2, drain: '1s', onStuck: 'exit' })
    const other = await bench.pawl.enqueue(waiting, null)
    const bad = await bench.pawl.enqueue(deaf, null)
    const error: unknown = await bench.finish(worker.ended.catch((reason: unknown) => reason))
    expect(error).toBeInstanceOf(WorkerStuck)
    expect(error).toMatchObject({ details: { jobId: bad.id, workerId: worker.id } })
    expect(worker.states.toSorted()).toEqual(['ReportingFailure', 'Stopped'])
    expect(await other.get()).toMatchObject({ state: 'queued', releases: 1, crashes: 0 })
    expect(await bench.store.listWorkers()).toEqual([])
    await bench.finish(worker.stop())
  })

  it('can be a function that is called for each report', async () => {
    const asked: number[] = []
    const { bench, worker, stick } = await withDeaf({
      onStuck: ({ forMs }) => {
        asked.push(Math.round(forMs / 1000))
        return forMs > 30_000 ? 'exit' : 'hold'
      },
    })
    await stick()
    const error: unknown = await bench.finish(worker.ended.catch((reason: unknown) => reason))
    expect(error).toBeInstanceOf(WorkerStuck)
    expect(asked).toEqual([5, 15, 35])
  })

  it('that throws holds the slot, and is reported', async () => {
    const { bench, worker, told, stick } = await withDeaf({
      onStuck: () => {
        throw new Error('no idea')
      },
    })
    await stick()
    await bench.until(() => told().length === 2, 100)
    expect(worker.states).toHaveLength(1)
    expect(bench.events.some((event) => event.type === 'error')).toBe(true)
  })

  it('must be one that exists', async () => {
    const bench = await EngineBench.open([echo])
    // @ts-expect-error: there is no such policy
    await expect(bench.pawl.work({ onStuck: 'ignore' })).rejects.toThrow('onStuck')
  })
})

describe('a worker that has stopped', () => {
  it('without trouble says so by its end', async () => {
    const { bench, worker } = await withDeaf()
    void worker.stop()
    await bench.finish(worker.ended)
    expect(new Set(worker.states)).toEqual(new Set(['Stopped']))
  })
})
