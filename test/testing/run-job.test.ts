// One attempt without a store: its outcome is what a worker would report.
import { defineJob, RetryAfter, Retryable, Terminal, typed } from 'pawl'
import { document } from 'pawl/rules'
import { runJob, testEnvironment } from 'pawl/testing'
import { describe, expect, expectTypeOf, it } from 'vitest'

const NO_TRACES = { progress: [], usage: {}, steps: [], effects: [], enqueued: [] }

describe('runJob', () => {
  it('gives the handler its input and its context, and gives back its output', async () => {
    const job = defineJob({
      name: 'add',
      queue: 'sums',
      input: typed<{ a: number; b: number }>(),
      run: ({ input, attempt, tags, queue, type }) => ({
        sum: input.a + input.b,
        context: [attempt, tags, queue, type],
      }),
    })
    const outcome = await runJob(job, { a: 1, b: 2 }, { attempt: 3, tags: ['x'] })
    expect(outcome).toEqual({
      ...NO_TRACES,
      kind: 'succeeded',
      isCommit: false,
      output: { sum: 3, context: [3, ['x'], 'sums', 'add'] },
    })
    if (outcome.kind === 'succeeded') expectTypeOf(outcome.output.sum).toEqualTypeOf<number>()
    // @ts-expect-error -- the input is not what the job takes
    await runJob(job, { a: 'one' })
  })

  it('says for how long a handler snoozed', async () => {
    const job = defineJob({ name: 'poll', run: ({ snooze }) => snooze('10m') })
    expect(await runJob(job, null)).toEqual({ ...NO_TRACES, kind: 'snoozed', delayMs: 600_000 })
  })

  it('tells failures by the class that decides about a retry', async () => {
    const failing = (error: unknown) =>
      defineJob({
        name: 'failing',
        run: ({ count }) => {
          count('calls')
          throw error
        },
      })
    const classes = [
      [new Error('unknown'), { class: 'retryable', kind: 'error' }],
      [new Retryable('full', 'overload'), { class: 'retryable', kind: 'overload' }],
      [new RetryAfter(5000), { class: 'retryable', retryAfterMs: 5000 }],
      [new Terminal('never'), { class: 'terminal', kind: 'terminal' }],
    ] as const
    for (const [error, failure] of classes) {
      expect(await runJob(failing(error), null)).toMatchObject({
        kind: 'failed',
        failure,
        usage: { calls: 1 },
      })
    }
  })

  it('checks the input as a worker does, and refuses a result that cannot be stored', async () => {
    const picky = defineJob({
      name: 'picky',
      input: {
        '~standard': {
          version: 1,
          vendor: 'test',
          validate: (value: unknown) =>
            value === 'ok' ? { value: 'better' } : { issues: [{ message: 'not ok' }] },
        },
      },
      run: ({ input }) => input,
    })
    expect(await runJob(picky, 'ok')).toMatchObject({ output: 'better' })
    expect(await runJob(picky, 'bad')).toMatchObject({
      kind: 'failed',
      failure: { class: 'invalid_input' },
    })
    const endless = defineJob({ name: 'endless', run: (): unknown => () => 1 })
    await expect(runJob(endless, null)).rejects.toMatchObject({ code: 'E_RESULT_NOT_STORED' })
  })

  it('keeps the reported progress, and what was counted', async () => {
    const job = defineJob({
      name: 'telling',
      run: ({ progress, count }) => {
        progress({ done: 1 })
        progress('half')
        count('pages', 3)
        count('pages')
      },
    })
    expect(await runJob(job, null)).toMatchObject({
      progress: [{ done: 1 }, 'half'],
      usage: { pages: 4 },
      output: undefined,
    })
  })

  it('runs the function of a commit once, against statements that the test answers', async () => {
    const asked: unknown[] = []
    let runs = 0
    const job = defineJob({
      name: 'committing',
      run: async ({ commit, count }) => {
        count('commits')
        const work = () =>
          commit(async (tx) => {
            runs++
            return tx.query('SELECT price FROM items WHERE id = $1', [7])
          })
        return [await work(), await work()]
      },
    })
    const outcome = await runJob(job, null, {
      query: async (sql, values) => {
        asked.push([sql, values])
        return [{ price: 3 }]
      },
    })
    expect(outcome).toEqual({
      ...NO_TRACES,
      kind: 'succeeded',
      isCommit: true,
      output: [{ price: 3 }],
      usage: { commits: 1 },
    })
    expect(asked).toEqual([['SELECT price FROM items WHERE id = $1', [7]]])
    expect(runs).toBe(1)
  })

  it('lets a commit that threw be tried again; statements need an answer', async () => {
    const job = defineJob({
      name: 'again',
      run: async ({ commit }) => {
        const refused = await commit((tx) => tx.query('SELECT 1')).catch((error) => error.code)
        return commit(() => refused)
      },
    })
    expect(await runJob(job, null)).toMatchObject({ isCommit: true, output: 'E_COMMAND_INVALID' })
  })

  it('cancels the attempt when its signal is aborted, before or while it runs', async () => {
    const job = defineJob({
      name: 'waiting',
      run: ({ signal }) =>
        new Promise<never>((_, reject) => {
          signal.throwIfAborted()
          signal.addEventListener('abort', () => reject(signal.reason))
        }),
    })
    expect(await runJob(job, null, { signal: AbortSignal.abort() })).toEqual({
      ...NO_TRACES,
      kind: 'cancelled',
    })
    const controller = new AbortController()
    const running = runJob(job, null, { signal: controller.signal })
    controller.abort()
    expect(await running).toMatchObject({ kind: 'cancelled' })
    const done = defineJob({ name: 'done', run: () => 'all the same' })
    expect(await runJob(done, null, { signal: AbortSignal.abort() })).toMatchObject({
      output: 'all the same',
    })
  })

  it('lets a time-out pass where the test moves the time', async () => {
    const environment = testEnvironment()
    const job = defineJob({
      name: 'slow',
      lifecycle: document,
      timeout: '30s',
      run: () => new Promise<never>(() => {}),
    })
    const running = runJob(job, null, { environment })
    environment.advance(30_000)
    expect(await running).toMatchObject({ kind: 'failed', failure: { kind: 'timeout' } })
  })

  it('refuses what is no attempt, and a job without code', async () => {
    const job = defineJob({ name: 'job', run: () => null })
    for (const attempt of [0, -1, 1.5, Number.NaN]) {
      await expect(runJob(job, null, { attempt })).rejects.toMatchObject({
        code: 'E_COMMAND_INVALID',
      })
    }
    const bare = defineJob({ name: 'bare' })
    await expect(runJob(bare, null)).rejects.toMatchObject({ code: 'E_COMMAND_INVALID' })
  })
})
