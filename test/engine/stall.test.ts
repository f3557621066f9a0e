// Attempts that must show signs of life of their own.
import { checkFacts, hardened, task } from 'pawl'
import { describe, expect, it } from 'vitest'
import { defineJob, type JobContext } from '../../src/engine/define-job.ts'
import { AttemptStalled } from '../../src/engine/errors.ts'
import { EngineBench, untilAborted } from './bench.ts'

const OPERATOR = { actor: 'operator', operator: 'ann', note: 'it may run again' } as const

describe('an attempt without a sign of life', () => {
  it('for its stallTimeout is aborted, and fails in a way that may be retried', async () => {
    const reasons: unknown[] = []
    const silent = defineJob({
      name: 'silent',
      stallTimeout: '10m',
      retry: { max: 1, delay: '1s', jitter: 0 },
      run: (context) => (context.attempt === 1 ? untilAborted(reasons).run(context) : 'again'),
    })
    const bench = await EngineBench.open([silent])
    await bench.work()
    const job = await bench.pawl.enqueue(silent, null)
    await bench.pass(599_000, 1000)
    expect(reasons).toEqual([])
    const outcome = await bench.finish(job.result())
    expect(outcome).toMatchObject({ kind: 'succeeded', output: 'again' })
    expect(outcome.job).toMatchObject({ attempt: 2, failures: 1, crashes: 0 })
    expect(reasons).toEqual([expect.any(AttemptStalled)])
    const facts = await bench.store.facts(job.id)
    const [claim, retry] = facts.filter(({ trigger }) => ['claim', 'retry'].includes(trigger))
    const silentMs = (retry?.at ?? 0) - (claim?.at ?? 0)
    expect(silentMs).toBeGreaterThanOrEqual(600_000)
    expect(silentMs).toBeLessThan(600_100)
    expect(retry).toMatchObject({ error: { kind: 'timeout', type: 'RETRYABLE' } })
    expect(retry?.error?.message).toContain('no sign of life')
  })

  it.each<[string, (context: JobContext<unknown>, n: number) => unknown]>([
    ['progress', ({ progress }, n) => progress(n)],
    ['count', ({ count }) => count('pages')],
  ])('is not one that calls %s in time, for however long', async (_name, live) => {
    let beat: () => void = () => {}
    const steps = 20
    const lively = defineJob({
      name: 'lively',
      stallTimeout: '1m',
      retry: { max: 0 },
      run: async (context) => {
        for (let n = 0; n < steps; n++) {
          await new Promise<void>((resolve) => {
            beat = resolve
          })
          live(context, n)
        }
      },
    })
    const bench = await EngineBench.open([lively])
    await bench.work()
    const job = await bench.pawl.enqueue(lively, null)
    await bench.until(async () => (await bench.state(job.id)) === 'running')
    for (let n = 0; n < steps; n++) {
      await bench.pass(55_000, 1000)
      beat()
    }
    expect(await bench.finish(job.result())).toMatchObject({ kind: 'succeeded' })
  })

  it('is every attempt of that kind, whatever it did before it fell silent', async () => {
    const falling = defineJob({
      name: 'falling',
      stallTimeout: '1m',
      retry: { max: 0 },
      run: ({ progress, signal }) => {
        progress('begun')
        return untilAborted([]).run({ signal })
      },
    })
    const bench = await EngineBench.open([falling])
    await bench.work()
    const job = await bench.pawl.enqueue(falling, null)
    expect(await bench.finish(job.result())).toMatchObject({ error: { kind: 'timeout' } })
  })

  it('does not matter where no stallTimeout is set: only the lease counts', async () => {
    let end: () => void = () => {}
    const patient = defineJob({
      name: 'patient',
      run: () =>
        new Promise<void>((resolve) => {
          end = resolve
        }),
    })
    const bench = await EngineBench.open([patient])
    await bench.work()
    const job = await bench.pawl.enqueue(patient, null)
    await bench.pass(2 * 3_600_000, 5000)
    end()
    expect(await bench.finish(job.result())).toMatchObject({ kind: 'succeeded' })
  })
})

describe('a stall', () => {
  it('in the lifecycle of document 000 is retried after its 60 seconds', async () => {
    const silent = defineJob({
      name: 'silent',
      lifecycle: hardened,
      stallTimeout: '10m',
      run: ({ attempt, signal }) => (attempt === 1 ? untilAborted([]).run({ signal }) : 'again'),
    })
    const bench = await EngineBench.open([silent])
    await bench.work()
    const job = await bench.pawl.enqueue(silent, null)
    await bench.pass(599_000, 1000)
    expect(await bench.finish(job.result())).toMatchObject({ kind: 'succeeded' })
    const facts = await bench.store.facts(job.id)
    expect(checkFacts(hardened, facts)).toEqual([])
    const claims = facts.filter(({ trigger }) => trigger === 'claim').map(({ at }) => at)
    const between = (claims[1] as number) - (claims[0] as number)
    expect(between).toBeGreaterThanOrEqual(660_000)
    expect(between).toBeLessThan(662_000)
  })

  it('that only an operator may recover is flagged, and waits', async () => {
    const reasons: unknown[] = []
    const careful = defineJob({
      name: 'careful',
      recovery: 'operator',
      stallTimeout: '1m',
      run: (context) => (context.attempt === 1 ? untilAborted(reasons).run(context) : 'again'),
    })
    const bench = await EngineBench.open([careful])
    await bench.work()
    const job = await bench.pawl.enqueue(careful, null)
    await bench.until(async () => (await job.get()).stalled, 100)
    expect(reasons).toEqual([expect.any(AttemptStalled)])
    expect(bench.events.filter(({ type }) => type === 'lost')).toHaveLength(1)
    await bench.pass(600_000, 1000)
    const { state, attempt, execution } = await job.get()
    expect([state, attempt]).toEqual(['running', 1])
    const fence = { attempt, claim: execution?.claim ?? '' }
    await bench.store.tell([job.id], { kind: 'expire', fence, approved: true }, OPERATOR)
    expect(await bench.finish(job.result())).toMatchObject({ kind: 'succeeded', output: 'again' })
  })

  it('in a lifecycle that retries crashes alone is left to recovery', async () => {
    const silent = defineJob({
      name: 'silent',
      lifecycle: task,
      stallTimeout: '1m',
      run: ({ attempt, signal }) => (attempt === 1 ? untilAborted([]).run({ signal }) : 'again'),
    })
    const bench = await EngineBench.open([silent])
    await bench.work()
    const job = await bench.pawl.enqueue(silent, null)
    expect(await bench.finish(job.result())).toMatchObject({ kind: 'succeeded', output: 'again' })
    expect(checkFacts(task, await bench.store.facts(job.id))).toEqual([])
  })

  it('cannot be set to happen at once', () => {
    expect(() => defineJob({ name: 'silent', stallTimeout: 0 })).toThrow('stallTimeout')
  })
})
