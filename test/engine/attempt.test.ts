// One attempt: its limits, its signal, what it tells, and what becomes of its report.
import { CommandInvalid, LeaseLost, typed } from 'pawl'
import { describe, expect, it } from 'vitest'
import { defineJob } from '../../src/engine/define-job.ts'
import { AttemptTimeout, Cancelled } from '../../src/engine/errors.ts'
import type { Store } from '../../src/stores/contract/store.ts'
import { EngineBench, untilAborted } from './bench.ts'

const echo = defineJob({ name: 'echo', run: ({ input }) => input })

describe('an attempt', () => {
  it('that takes too long fails with a time-out, and keeps its slot until it ends', async () => {
    let end: () => void = () => {}
    const deaf = defineJob({
      name: 'deaf',
      timeout: '1s',
      retry: { max: 0 },
      run: () =>
        new Promise<void>((resolve) => {
          end = resolve
        }),
    })
    const bench = await EngineBench.open([deaf, echo])
    const worker = await bench.work()
    const job = await bench.pawl.enqueue(deaf, null)
    const outcome = await bench.finish(job.result())
    expect(outcome).toMatchObject({ kind: 'parked', error: { kind: 'timeout' } })
    expect(worker.stuck).toBe(1)
    const next = await bench.pawl.enqueue(echo, 1)
    await bench.until(() => bench.environment.clock.now() > outcome.job.updatedAt + 5000)
    expect(await bench.state(next.id)).toBe('queued')
    end()
    await bench.finish(next.result())
    expect(worker.stuck).toBe(0)
  })

  it('learns by its signal that its time is up', async () => {
    const reasons: unknown[] = []
    const job = defineJob({
      name: 'long',
      timeout: '1s',
      retry: { max: 0 },
      ...untilAborted(reasons),
    })
    const bench = await EngineBench.open([job])
    await bench.work()
    await bench.finish((await bench.pawl.enqueue(job, null)).result())
    expect(reasons[0]).toBeInstanceOf(AttemptTimeout)
  })

  it('logs under its own name, and cannot pass for another', async () => {
    const lines: unknown[] = []
    const say = (level: string) => (fields: object, msg: string) => lines.push([level, fields, msg])
    const logger = {
      debug: () => {},
      ...{ info: say('info'), warn: say('warn'), error: say('error') },
    }
    const job = defineJob({
      name: 'talkative',
      run: ({ log }) => log.warn({ cents: 5, job_id: 'another' }, 'That is little'),
    })
    const bench = await EngineBench.open([job], undefined, { logger })
    await bench.work({ id: 'worker-1' })
    const handle = await bench.pawl.enqueue(job, null)
    await bench.finish(handle.result())
    const own = { job_id: handle.id, attempt: 1, queue: 'default', kind: 'talkative' }
    const fields = { cents: 5, ...own, worker_id: 'worker-1' }
    expect(lines).toContainEqual(['warn', fields, 'That is little'])
  })

  it('past the deadline of its job fails for good', async () => {
    const job = defineJob({ name: 'late', ...untilAborted([]) })
    const bench = await EngineBench.open([job])
    await bench.work()
    const deadline = new Date(bench.store.now() + 5000)
    const handle = await bench.pawl.enqueue(job, null, { deadline })
    const outcome = await bench.finish(handle.result())
    expect(outcome).toMatchObject({ kind: 'failed', error: { kind: 'deadline' } })
  })

  it('is told when its job is cancelled, and the job then is', async () => {
    const reasons: unknown[] = []
    const job = defineJob({ name: 'cancelled', ...untilAborted(reasons) })
    const bench = await EngineBench.open([job])
    await bench.work()
    const handle = await bench.pawl.enqueue(job, null)
    await bench.until(async () => (await bench.state(handle.id)) === 'running')
    await handle.cancel()
    const outcome = await bench.finish(handle.result())
    expect(outcome.kind).toBe('cancelled')
    expect(reasons[0]).toBeInstanceOf(Cancelled)
  })

  it('that finishes although its job was to be cancelled has won', async () => {
    let end: () => void = () => {}
    const job = defineJob({
      name: 'fast',
      run: () =>
        new Promise<string>((resolve) => {
          end = () => resolve('done')
        }),
    })
    const bench = await EngineBench.open([job])
    await bench.work()
    const handle = await bench.pawl.enqueue(job, null)
    await bench.until(async () => (await bench.state(handle.id)) === 'running')
    await handle.cancel()
    end()
    expect(await bench.finish(handle.result())).toMatchObject({ kind: 'succeeded', output: 'done' })
  })

  it('keeps its lease for as long as it runs', async () => {
    let end: () => void = () => {}
    const job = defineJob({
      name: 'examined',
      run: () =>
        new Promise<void>((resolve) => {
          end = resolve
        }),
    })
    const bench = await EngineBench.open([job])
    await bench.work({ lease: '30s' })
    const handle = await bench.pawl.enqueue(job, null)
    const start = bench.environment.clock.now()
    await bench.until(() => bench.environment.clock.now() - start > 300_000, 1000)
    end()
    const outcome = await bench.finish(handle.result())
    expect(outcome).toMatchObject({ kind: 'succeeded', job: { attempt: 1, crashes: 0 } })
  })

  it('that has lost its lease is aborted, and what it reports changes nothing', async () => {
    const reasons: unknown[] = []
    const job = defineJob({ name: 'lost', ...untilAborted(reasons) })
    const bench = await EngineBench.open([job])
    await bench.work({ lease: '30s' })
    const handle = await bench.pawl.enqueue(job, null)
    await bench.until(async () => (await bench.state(handle.id)) === 'running')
    const requester = { actor: 'operator', operator: 'ann', note: 'take it away' } as const
    await bench.store.applyCommand([handle.id], { kind: 'park' }, requester)
    await bench.until(() => reasons.length > 0)
    expect(reasons[0]).toBeInstanceOf(LeaseLost)
    expect(await bench.state(handle.id)).toBe('quarantined')
    expect((await bench.store.facts(handle.id)).at(-1)?.trigger).toBe('park')
  })

  it('cannot count what is no number, and learns of it at once', async () => {
    const job = defineJob({
      name: 'counting',
      run: ({ count }) => {
        count('pages', 2)
        expect(() => count('pages', Number.NaN)).toThrow(CommandInvalid)
        expect(() => count('', 1)).toThrow(CommandInvalid)
        count('pages', 3)
      },
    })
    const bench = await EngineBench.open([job])
    await bench.work()
    const handle = await bench.pawl.enqueue(job, null)
    expect((await bench.finish(handle.result())).kind).toBe('succeeded')
    expect((await bench.store.facts(handle.id)).at(-1)?.usage).toEqual({ pages: 5 })
  })

  it('whose report the store refuses fails for good, with the reason', async () => {
    const refusing = (store: Store) =>
      new Proxy(store, {
        get(target, name: keyof Store) {
          const value = target[name] as unknown
          if (typeof value !== 'function') return value
          if (name !== 'settle') return value.bind(target)
          const settle: Store['settle'] = async (settlements, next) => {
            const settled = await target.settle(
              settlements.filter(({ command }) => command.kind !== 'commit'),
              next,
            )
            const error = new CommandInvalid('payload', 'is odd')
            const answers = [...settled.answers]
            return {
              ...settled,
              answers: settlements.map(({ command }) =>
                command.kind === 'commit'
                  ? ({ kind: 'rejected', error } as const)
                  : (answers.shift() as (typeof answers)[0]),
              ),
            }
          }
          return settle
        },
      })
    const bench = await EngineBench.open([echo], refusing)
    await bench.work()
    const outcome = await bench.finish((await bench.pawl.enqueue(echo, 1)).result())
    expect(outcome).toMatchObject({ kind: 'failed', job: { attempt: 1 } })
    expect(outcome.job.error?.message).toContain('is odd')
  })

  it('is not made for a job that waits past its deadline, and result answers in time', async () => {
    let runs = 0
    const late = defineJob({ name: 'late', run: () => runs++ })
    const bench = await EngineBench.open([late])
    await bench.work()
    const now = bench.pawl.store.now()
    const handle = await bench.pawl.enqueue(late, null, {
      delay: '1h',
      deadline: new Date(now + 60_000),
    })
    const outcome = await bench.finish(handle.result())
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'deadline' })
    expect(outcome.job.endedAt).toBeGreaterThanOrEqual(now + 60_000)
    expect(outcome.job.endedAt).toBeLessThan(now + 65_000)
    expect(runs).toBe(0)
  })

  it('leaves the progress that it told last, although no heartbeat came after it', async () => {
    const job = defineJob({
      name: 'ending',
      input: typed<'return' | 'commit' | 'throw'>(),
      retry: { max: 0 },
      run: async ({ input, progress, commit }) => {
        progress('begun')
        if (input === 'commit') return commit(() => progress('inside'))
        progress('done')
        if (input === 'throw') throw new Error('no')
      },
    })
    const bench = await EngineBench.open([job])
    await bench.work()
    for (const [way, last] of Object.entries({ return: 'done', commit: 'inside', throw: 'done' })) {
      const handle = await bench.pawl.enqueue(job, way as 'return')
      await bench.finish(handle.result())
      expect(await handle.progress()).toBe(last)
    }
  })

  it('tells how far it is, and others can see it', async () => {
    const job = defineJob({
      name: 'progressing',
      run: async ({ progress, signal }) => {
        progress({ done: 1, of: 3 })
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      },
    })
    const bench = await EngineBench.open([job])
    await bench.work()
    const handle = await bench.pawl.enqueue(job, null)
    await bench.until(async () => (await handle.progress()) !== undefined)
    expect(await handle.progress()).toEqual({ done: 1, of: 3 })
    await handle.cancel()
    await bench.finish(handle.result())
  })
})
