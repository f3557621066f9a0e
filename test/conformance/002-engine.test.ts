// R2 (job lifecycle) through the real engine: its jobs on a store, in virtual time.
import { createPawl, defineJob, type Handler, type JobHandle, Retryable, Terminal } from 'pawl'
import {
  checkFacts,
  DefinitionInvalid,
  document,
  FAILURE_KINDS,
  type RetryableKind,
  type TerminalKind,
  viewOf,
} from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { EngineBench } from '../engine/bench.ts'
import { freshStoreDatabase } from '../support/postgres/databases.ts'
import { statesOf } from './played-job.ts'

const OPERATOR = { actor: 'operator', operator: 'ann', note: 'once more' } as const

/** A bench with one worker and one job, which has ended. */
async function played(run: Handler<unknown, unknown>) {
  const job = defineJob({ name: 'page', lifecycle: document, run })
  const bench = await EngineBench.open([job])
  await bench.work()
  const handle = await bench.pawl.enqueue(job, null)
  const outcome = await bench.finish(handle.result())
  const facts = await bench.store.facts(handle.id)
  expect(checkFacts(document, facts)).toEqual([])
  return { bench, handle, outcome, facts, view: viewOf(document, outcome.job) }
}

describe('the documented examples', () => {
  it('successful processing', async () => {
    const { facts, outcome, view } = await played(() => 'text')
    expect(outcome).toMatchObject({ kind: 'succeeded', output: 'text' })
    expect(statesOf(facts)).toEqual(['CREATED', 'QUEUED', 'RUNNING', 'SUCCEEDED'])
    expect(view).toMatchObject({ retryCount: 0, maxRetries: 3, lastError: null, errorType: null })
  })

  it('a failure with a successful retry', async () => {
    const { facts, outcome, view } = await played(({ attempt }) => {
      if (attempt === 1) throw new Retryable('took too long', 'timeout')
      return attempt
    })
    expect(outcome).toMatchObject({ kind: 'succeeded', output: 2 })
    const round = ['QUEUED', 'RUNNING']
    expect(statesOf(facts)).toEqual(['CREATED', ...round, 'RETRYING', ...round, 'SUCCEEDED'])
    expect(view).toMatchObject({ retryCount: 1, lastError: null, errorType: null })
  })

  it('a failure that exhausts its three retries', async () => {
    const { facts, outcome, view } = await played(({ attempt }) => {
      throw new Retryable(`away, attempt ${attempt}`, 'unavailable')
    })
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'retries_exhausted' })
    const round = ['QUEUED', 'RUNNING']
    const retried = [...round, 'RETRYING']
    expect(statesOf(facts)).toEqual([
      ...['CREATED', ...retried, ...retried, ...retried],
      ...[...round, 'FAILED'],
    ])
    expect(view).toMatchObject({ state: 'FAILED', retryCount: 3, maxRetries: 3 })
    expect(view.lastError).toContain('away, attempt 4')
  })

  it('a failure that no retry cures', async () => {
    const { facts, view } = await played(() => {
      throw new Terminal('not a document', 'invalid_input')
    })
    expect(statesOf(facts)).toEqual(['CREATED', 'QUEUED', 'RUNNING', 'FAILED'])
    expect(view).toMatchObject({ retryCount: 0, errorType: 'TERMINAL' })
  })
})

it('the documented examples hold on PostgreSQL as well, in real time', async () => {
  const run: Handler<unknown, unknown> = ({ input, attempt }) => {
    if (input === 'invalid') throw new Terminal('not a document', 'invalid_input')
    if (input === 'away' || (input === 'slow' && attempt === 1)) throw new Retryable('not now')
    return attempt
  }
  const job = defineJob({ name: 'page', lifecycle: document, run })
  const store = await freshStoreDatabase()
  await using pawl = await createPawl({ store, jobs: [job] })
  await pawl.work()
  const inputs = ['fine', 'slow', 'away', 'invalid'].map((input) => ({ input }))
  const handles = await pawl.enqueueMany(job, inputs)
  const seen = handles.map(async (handle) => {
    const { job } = await handle.result({ timeout: '15s' })
    const facts = await pawl.store.facts(handle.id)
    expect(checkFacts(document, facts)).toEqual([])
    for (const { runAt, at } of facts.filter(({ trigger }) => trigger === 'retry')) {
      expect((runAt as number) - at).toBe(1000)
    }
    return [job.state, viewOf(document, job).retryCount, facts.length]
  })
  expect(await Promise.all(seen)).toEqual([
    ['SUCCEEDED', 0, 3],
    ['SUCCEEDED', 1, 6],
    ['FAILED', 3, 12],
    ['FAILED', 0, 3],
  ])
})

describe('retries', () => {
  it('wait exactly one second in RETRYING, each time', async () => {
    const { facts } = await played(() => {
      throw new Error('away')
    })
    const retries = facts.filter(({ trigger }) => trigger === 'retry')
    expect(retries.map(({ runAt, at }) => (runAt as number) - at)).toEqual([1000, 1000, 1000])
    const claims = facts.filter(({ trigger }) => trigger === 'claim').slice(1)
    for (const [i, { at }] of claims.entries()) {
      const late = at - (retries[i]?.runAt as number)
      expect(late).toBeGreaterThanOrEqual(0)
      expect(late).toBeLessThanOrEqual(100)
    }
  })

  it('cannot be given another number or delay by a kind of job', () => {
    for (const retry of [{ max: 5 }, { delay: '2s' }, 'exponential'] as const) {
      const define = () => defineJob({ name: 'page', lifecycle: document, retry })
      expect(define).toThrow(DefinitionInvalid)
    }
  })

  it('are for retryable errors alone, by the two lists of the document', async () => {
    const kinds = Object.entries(FAILURE_KINDS).filter(([kind]) => kind !== 'error')
    expect(kinds).toHaveLength(10)
    for (const [kind, expected] of kinds) {
      const isRetryable = expected === 'retryable'
      const { outcome, view } = await played(({ attempt }) => {
        if (attempt > 1) return attempt
        throw isRetryable
          ? new Retryable(kind, kind as RetryableKind)
          : new Terminal(kind, kind as TerminalKind)
      })
      expect([kind, outcome.kind]).toEqual([kind, isRetryable ? 'succeeded' : 'failed'])
      expect([kind, view.retryCount]).toEqual([kind, isRetryable ? 1 : 0])
    }
  })

  it('follow a worker that went silent, as they follow an error', async () => {
    const job = defineJob({ name: 'page', lifecycle: document, run: ({ attempt }) => attempt })
    const bench = await EngineBench.open([job])
    const handle = await bench.pawl.enqueue(job, null)
    await bench.store.claim({ worker: 'silent', limit: 1, leaseMs: 30_000, start: true })
    await bench.work()
    expect(await bench.finish(handle.result())).toMatchObject({ kind: 'succeeded', output: 2 })
    const facts = await bench.store.facts(handle.id)
    expect(statesOf(facts).slice(2, 5)).toEqual(['RUNNING', 'RETRYING', 'QUEUED'])
    expect(viewOf(document, await handle.get()).retryCount).toBe(1)
  })
})

describe('a job', () => {
  it('that was only created waits for its submission', async () => {
    const job = defineJob({ name: 'page', lifecycle: document, run: () => 'text' })
    const bench = await EngineBench.open([job])
    await bench.work()
    const handle = await bench.pawl.enqueue(job, null, { hold: true })
    const start = bench.environment.clock.now()
    await bench.until(() => bench.environment.clock.now() >= start + 60_000)
    const view = viewOf(document, await handle.get())
    expect(view).toMatchObject({ state: 'CREATED', startedAt: null, completedAt: null })
    await bench.pawl.submit(handle.id)
    expect(await bench.finish(handle.result())).toMatchObject({ kind: 'succeeded' })
  })

  it('shows its metadata in every state that it passes', async () => {
    const ends: (() => void)[] = []
    const job = defineJob({
      name: 'page',
      lifecycle: document,
      run: async ({ attempt }) => {
        await new Promise<void>((resolve) => void ends.push(resolve))
        if (attempt === 1) throw new Retryable('not now')
      },
    })
    const bench = await EngineBench.open([job])
    const start = bench.environment.clock.now()
    const handle = await bench.pawl.enqueue(job, null)
    const view = async () => viewOf(document, await handle.get())
    const fixed = { jobId: handle.id, createdAt: start, maxRetries: 3 }
    const calm = { ...fixed, completedAt: null, lastError: null, errorType: null }
    expect(await view()).toEqual({ ...calm, state: 'QUEUED', startedAt: null, retryCount: 0 })
    await bench.work()
    await bench.until(() => ends.length === 1)
    expect(await view()).toEqual({ ...calm, state: 'RUNNING', startedAt: start, retryCount: 0 })
    ends[0]?.()
    await bench.until(async () => (await bench.state(handle.id)) === 'RETRYING')
    const failed = { lastError: 'Retryable: not now', errorType: 'RETRYABLE', retryCount: 1 }
    expect(await view()).toEqual({ ...calm, ...failed, state: 'RETRYING', startedAt: start })
    await bench.until(() => ends.length === 2)
    const again = (await view()).startedAt as number
    expect(again).toBeGreaterThanOrEqual(start + 1000)
    ends[1]?.()
    const { job: ended } = await bench.finish(handle.result())
    const completedAt = ended.endedAt as number
    expect(completedAt).toBeGreaterThanOrEqual(again)
    const done = { ...calm, state: 'SUCCEEDED', startedAt: again, retryCount: 1, completedAt }
    expect(await view()).toEqual(done)
  })

  it('that has ended stays as it is, whatever command it is given', async () => {
    const ended = {
      SUCCEEDED: await played(() => 'text'),
      FAILED: await played(() => {
        throw new Terminal('not a document')
      }),
    }
    for (const [state, { bench, handle, facts }] of Object.entries(ended)) {
      const before = await handle.get()
      expect(before.state).toBe(state)
      for (const kind of ['redrive', 'submit', 'cancel', 'park', 'exhaust', 'discard'] as const) {
        const [answer] = await bench.store.applyCommand([handle.id], { kind }, OPERATOR)
        // What leads to where the job is already is no change, and no error.
        const isThere = state === 'FAILED' && ['cancel', 'exhaust'].includes(kind)
        expect([state, kind, answer?.kind]).toEqual([state, kind, isThere ? 'same' : 'rejected'])
      }
      const start = bench.environment.clock.now()
      await bench.until(() => bench.environment.clock.now() >= start + 60_000)
      expect(await handle.get()).toEqual(before)
      expect(await bench.store.facts(handle.id)).toEqual(facts)
    }
  })

  it('that its queue has no room or no time for ends in FAILED', async () => {
    const ends: (() => void)[] = []
    const job = defineJob({
      name: 'page',
      lifecycle: document,
      run: () => new Promise<void>((end) => ends.push(end)),
    })
    const bench = await EngineBench.open([job])
    await bench.pawl.limitQueue('default', { maxDepth: 2, maxWait: '1m' })
    const many = (count: number) =>
      bench.pawl.enqueueMany(
        job,
        Array.from({ length: count }, () => ({ input: null })),
      )
    await bench.work({ concurrency: 1 })
    const [runs] = (await many(1)) as [JobHandle]
    await bench.until(() => ends.length === 1)
    const waiting = (await many(2)).map((handle) => handle.result())
    const outcomes = await bench.finish(Promise.all(waiting))
    for (const { job, ...outcome } of outcomes) {
      expect(outcome).toMatchObject({ kind: 'failed', reason: 'resource_exhausted' })
      expect(viewOf(document, job)).toMatchObject({ state: 'FAILED', errorType: 'TERMINAL' })
      expect(job.endedAt as number).toBeGreaterThan(job.createdAt + 60_000)
    }
    const [, , third] = (await many(3)) as [JobHandle, JobHandle, JobHandle]
    const last = await bench.finish(third.result())
    expect(last).toMatchObject({ kind: 'failed', reason: 'resource_exhausted' })
    expect(last.job.endedAt as number).toBeLessThan(last.job.createdAt + 60_000)
    ends[0]?.()
    expect(await bench.finish(runs.result())).toMatchObject({ kind: 'succeeded' })
  })

  it('that is cancelled ends in FAILED, whether it waits or runs', async () => {
    let isRunning = false
    const job = defineJob({
      name: 'page',
      lifecycle: document,
      run: ({ signal }) =>
        new Promise<never>((_, reject) => {
          isRunning = true
          signal.addEventListener('abort', () => reject(signal.reason))
        }),
    })
    const bench = await EngineBench.open([job])
    const waiting = await bench.pawl.enqueue(job, null)
    await waiting.cancel()
    await bench.work()
    const running = await bench.pawl.enqueue(job, null)
    await bench.until(() => isRunning)
    await running.cancel()
    await bench.finish(running.result())
    for (const handle of [waiting, running]) {
      const after = await handle.get()
      expect(after).toMatchObject({ state: 'FAILED', reason: 'cancelled' })
      expect(viewOf(document, after).completedAt).not.toBeNull()
      expect(checkFacts(document, await bench.store.facts(handle.id))).toEqual([])
    }
  })
})
