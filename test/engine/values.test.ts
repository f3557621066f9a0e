// Which values survive being stored, on both databases: inputs, steps, effects, results, progress.
import { createPawl, defineJob, ResultNotStored, type Schema, typed } from 'pawl'
import { LIFECYCLES } from 'pawl/rules'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { brokenPromises } from '../processes/inspect.ts'
import { PLACES } from './processes/places.ts'

const timeout = 30_000
const WAIT = { timeout: 15_000, interval: 10 }

const RICH = {
  at: new Date('2026-01-31T09:30:00.123Z'),
  total: 2n ** 70n,
  tags: new Set(['a', 'b']),
  prices: new Map([[1, { from: new Date(0) }]]),
  bytes: new Uint8Array([0, 127, 255]),
  list: [undefined, null, Number.NaN, Number.NEGATIVE_INFINITY],
  '@pawl:date': 'my own',
}

/** A schema as libraries make them: `z.object({ at: z.date(), from: z.coerce.date() })`. */
const DATED: Schema<{ at: Date; from: string | Date }, { at: Date; from: Date }> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value) => {
      const { at, from } = value as { at: unknown; from: string | Date }
      if (!(at instanceof Date)) return { issues: [{ message: 'expected date', path: ['at'] }] }
      return { value: { at, from: new Date(from) } }
    },
  },
}

/** As `z.string().optional()`. */
const OPTIONAL: Schema<string | undefined> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value) =>
      value === undefined || typeof value === 'string'
        ? { value }
        : { issues: [{ message: 'expected string' }] },
  },
}

const SELECT_DATE = {
  'a SQLite file': `SELECT payload -> 'at' ->> '@pawl:date' AS at FROM pawl_ledger`,
  PostgreSQL: `SELECT payload::jsonb -> 'at' ->> '@pawl:date' AS at FROM pawl.ledger`,
}

describe.each(PLACES)('on $name', ({ name, place }) => {
  async function open(jobs: Parameters<typeof createPawl>[0]['jobs']) {
    const { store, pawl: client } = await place()
    const pawl = await createPawl({ store, jobs: jobs ?? [] })
    onTestFinished(() => pawl.close())
    await pawl.work()
    return { client, pawl }
  }

  it('a value is the same in input, steps, effects, progress and result', { timeout }, async () => {
    const seen: Record<string, unknown> = {}
    const job = defineJob({
      name: 'rich',
      input: typed<typeof RICH>(),
      retry: { max: 1, delay: 0 },
      effects: {
        send: ({ payload }: { payload: typeof RICH }) => {
          seen.effect = payload
        },
      },
      run: async ({ input, attempt, step, commit, progress }) => {
        seen.input = input
        const name = attempt === 1 ? 'first' : 'again'
        seen[name] = await step('remember', () => input)
        seen[`nothing ${name}`] = await step('nothing', () => {})
        if (attempt === 1) throw new Error('once more')
        progress(input)
        return commit((tx) => {
          tx.effect('send', input)
          return input
        })
      },
    })
    const { client } = await open([job])
    const handle = await client.enqueue(job, RICH)
    const outcome = await handle.result({ timeout: '10s' })
    expect(outcome).toMatchObject({ kind: 'succeeded', job: { attempt: 2 } })
    expect((outcome as { output: unknown }).output).toStrictEqual(RICH)
    await vi.waitFor(() => expect(seen.effect).toStrictEqual(RICH), WAIT)
    for (const name of ['input', 'first', 'again']) expect(seen[name]).toStrictEqual(RICH)
    expect([seen['nothing first'], seen['nothing again']]).toEqual([undefined, undefined])
    expect(await brokenPromises(client.store)).toEqual([])
  })

  it('a schema gets a Date when a job is enqueued, and again in its handler', {
    timeout,
  }, async () => {
    const job = defineJob({
      name: 'dated',
      input: DATED,
      run: ({ input: { at, from } }) => [at, from],
    })
    const { client } = await open([job])
    const handle = await client.enqueue(job, { at: new Date(0), from: '2026-01-01' })
    expect(await handle.result({ timeout: '10s' })).toMatchObject({
      kind: 'succeeded',
      output: [new Date(0), new Date('2026-01-01')],
    })
    const wrong = { at: '1970-01-01', from: '2026-01-01' } as never
    await expect(client.enqueue(job, wrong)).rejects.toMatchObject({ code: 'E_INPUT_INVALID' })
    const optional = defineJob({
      name: 'optional',
      input: OPTIONAL,
      run: ({ input }) => input === undefined,
    })
    const other = await open([optional])
    const empty = await other.client.enqueue(optional, undefined)
    expect(await empty.result({ timeout: '10s' })).toMatchObject({ output: true })
  })

  it('a handler without a result stores none, and its outcome is undefined', {
    timeout,
  }, async () => {
    const job = defineJob({
      name: 'silent',
      input: typed<'return' | 'commit'>(),
      run: async ({ input, commit }): Promise<void> => {
        if (input === 'commit') await commit(() => {})
      },
    })
    const { client } = await open([job])
    for (const way of ['return', 'commit'] as const) {
      const handle = await client.enqueue(job, way)
      const outcome = await handle.result({ timeout: '10s' })
      expect(outcome).toMatchObject({ kind: 'succeeded' })
      expect(outcome).toHaveProperty('output', undefined)
      expect(await client.store.payloads(handle.id)).toEqual({ input: JSON.stringify(way) })
    }
  })

  it('a result that cannot be stored does not undo finished work', { timeout }, async () => {
    class Row {
      readonly at = new Date(0)
      reload() {}
    }
    let runs = 0
    const job = defineJob({
      name: 'unstorable',
      input: typed<'return' | 'commit' | 'large'>(),
      run: async ({ input, commit }): Promise<unknown> => {
        runs++
        const result = { rows: [1, { row: new Row() }] }
        if (input === 'return') return result
        if (input === 'large') return 'x'.repeat(17 * 1024 * 1024)
        return commit(() => result as unknown)
      },
    })
    const { client } = await open([job])
    for (const way of ['return', 'commit'] as const) {
      const handle = await client.enqueue(job, way)
      const error = await handle.result({ timeout: '10s' }).catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(ResultNotStored)
      expect(error).toMatchObject({
        code: 'E_RESULT_NOT_STORED',
        message: expect.stringMatching(/\$\.rows\[1\]\.row is an instance of Row.*\(reload\)/),
      })
      await vi.waitFor(async () => expect((await handle.get()).outcome).toBe('succeeded'), WAIT)
    }
    const large = await client.enqueue(job, 'large')
    await expect(large.result({ timeout: '10s' })).rejects.toThrow(
      /about 17 MiB, and at most 16 MiB are allowed/,
    )
    expect(runs).toBe(3)
    expect(await brokenPromises(client.store)).toEqual([])
  })

  it('a stored text with an unknown tag is a failure of its job alone', { timeout }, async () => {
    const job = defineJob({ name: 'tagged', run: () => 'fine' })
    const { client } = await open([job])
    const jobId = '00000000-0000-7000-8000-00000000aaaa'
    const [lifecycle] = LIFECYCLES
    const command = { jobId, type: 'tagged', queue: 'default' }
    const input = '{"a":[{"@pawl:later":1}]}'
    await client.store.enqueue([{ lifecycle: lifecycle as never, command, input }])
    const outcome = await client.job(jobId).result({ timeout: '10s' })
    expect(outcome).toMatchObject({
      kind: 'parked',
      reason: 'invalid_input',
      error: { message: expect.stringContaining('$.a[0] has the unknown tag "@pawl:later"') },
    })
    const next = await client.enqueue(job, null)
    expect(await next.result({ timeout: '10s' })).toMatchObject({ output: 'fine' })
    expect(await brokenPromises(client.store)).toEqual([])
  })

  it('an input that cannot be stored is refused with its path', { timeout }, async () => {
    const { pawl: client } = await place()
    const job = defineJob({ name: 'refusing' })
    const circular: Record<string, unknown> = {}
    circular.self = { circular }
    for (const [input, message] of [
      [circular, 'The value at $.self.circular refers back to $'],
      [{ run: () => 1 }, 'The value at $.run is a function'],
      ['x'.repeat(20 * 1024 * 1024), 'is too large: about 20 MiB, and at most 16 MiB are allowed'],
    ] as const) {
      const refused = client.enqueue(job, input)
      await expect(refused).rejects.toMatchObject({
        code: 'E_VALUE_INVALID',
        message: expect.stringContaining(message),
      })
    }
    expect((await client.store.list({})).items).toEqual([])
  })

  it('SQL finds a date by the name of its tag', { timeout }, async () => {
    const { pawl } = await place()
    await pawl.enqueue(defineJob({ name: 'dated' }), { at: RICH.at })
    const sql = SELECT_DATE[name as keyof typeof SELECT_DATE]
    const rows = await pawl.transaction((tx) => tx.query(sql))
    expect(rows).toMatchObject([{ at: '2026-01-31T09:30:00.123Z' }])
  })
})
