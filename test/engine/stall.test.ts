// Attempts that must show signs of life of their own.
import { Doctor } from 'pawl/doctor'
import { checkFacts, hardened, LIFECYCLES, task } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { defineJob } from '../../src/engine/define-job.ts'
import { AttemptStalled } from '../../src/engine/errors.ts'
import type { JobContext } from '../../src/engine/job-context.ts'
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
    await bench.pass(595_000, 5000)
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
    expect(retry?.error?.message).toContain('no activity')
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
      await bench.pass(55_000, 5000)
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
    const examined = defineJob({
      name: 'examined',
      run: () =>
        new Promise<void>((resolve) => {
          end = resolve
        }),
    })
    const bench = await EngineBench.open([examined])
    await bench.work()
    const job = await bench.pawl.enqueue(examined, null)
    await bench.pass(3_600_000, 10_000)
    end()
    expect(await bench.finish(job.result())).toMatchObject({ kind: 'succeeded' })
  })
})

describe('a stall', () => {
  it('in the lifecycle of R0 is retried after its 60 seconds', async () => {
    const silent = defineJob({
      name: 'silent',
      lifecycle: hardened,
      stallTimeout: '10m',
      run: ({ attempt, signal }) => (attempt === 1 ? untilAborted([]).run({ signal }) : 'again'),
    })
    const bench = await EngineBench.open([silent])
    await bench.work()
    const job = await bench.pawl.enqueue(silent, null)
    await bench.pass(595_000, 5000)
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
    await bench.pass(600_000, 5000)
    const { state, attempt, execution } = await job.get()
    expect([state, attempt]).toEqual(['running', 1])
    const fence = { attempt, claim: execution?.claim ?? '' }
    await bench.store.applyCommand([job.id], { kind: 'expire', fence, approved: true }, OPERATOR)
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

describe('a handler that shows no activity under a live lease', () => {
  const hangs = (options: { stallWarning?: '20m' | false } = {}) =>
    defineJob({ name: 'hangs', run: () => new Promise(() => {}), ...options })

  async function held(bench: EngineBench, job: ReturnType<typeof hangs>, work = {}) {
    await bench.work(work)
    const handle = await bench.pawl.enqueue(job, null)
    await bench.until(async () => (await bench.state(handle.id)) === 'running')
    return handle.id
  }

  const silences = (bench: EngineBench) =>
    bench.events.flatMap((event) => (event.type === 'silent' ? [event] : []))

  it('is reported after ten minutes, and whenever that time has doubled', async () => {
    const job = hangs()
    const bench = await EngineBench.open([job])
    const id = await held(bench, job)
    await bench.pass(590_000, 5000)
    expect(silences(bench)).toEqual([])
    await bench.pass(20_000, 5000)
    const [first] = silences(bench)
    expect(first).toMatchObject({ job: { id }, worker: expect.any(String) })
    expect(first?.silentMs).toBeGreaterThanOrEqual(600_000)
    await bench.pass(500_000, 5000)
    expect(silences(bench)).toHaveLength(1)
    await bench.pass(120_000, 5000)
    expect(silences(bench)).toHaveLength(2)
    // Nothing was done about it.
    expect(await bench.store.get(id)).toMatchObject({ state: 'running', attempt: 1, crashes: 0 })
    expect((await bench.pawl.explain(id)).says).toMatch(
      /its handler has shown no activity for 20m( \d+s)?;/,
    )
    const { store, environment } = bench
    const { findings } = await new Doctor({ store, environment, lifecycles: LIFECYCLES }).check({})
    expect(findings).toMatchObject([
      {
        check: 'stalled-jobs',
        severity: 'warning',
        subject: `job ${id}`,
        what: expect.stringContaining('its handler has shown no activity for'),
      },
    ])
  })

  it('is not reported while it shows one', async () => {
    let beat: () => void = () => {}
    const lively = defineJob({
      name: 'lively',
      run: async ({ progress }) => {
        for (;;) {
          await new Promise<void>((resolve) => {
            beat = resolve
          })
          progress(1)
        }
      },
    })
    const bench = await EngineBench.open([lively])
    await bench.work()
    const { id } = await bench.pawl.enqueue(lively, null)
    await bench.until(async () => (await bench.state(id)) === 'running')
    for (let i = 0; i < 4; i++) {
      await bench.pass(300_000, 5000)
      beat()
    }
    expect(silences(bench)).toEqual([])
  })

  it('is reported at the time that its type or its worker says, or never', async () => {
    const cases = [
      { job: hangs({ stallWarning: '20m' }), work: {}, after: 1_200_000 },
      { job: hangs(), work: { stallWarning: '15m' }, after: 900_000 },
      { job: hangs({ stallWarning: false }), work: {}, after: undefined },
      { job: hangs(), work: { stallWarning: 0 }, after: undefined },
    ]
    for (const { job, work, after } of cases) {
      const bench = await EngineBench.open([job])
      await held(bench, job, work)
      await bench.pass(1_300_000, 10_000)
      const first = silences(bench)[0]?.silentMs
      if (after === undefined) expect(first).toBeUndefined()
      else expect(first).toBeGreaterThanOrEqual(after)
    }
  })
})
