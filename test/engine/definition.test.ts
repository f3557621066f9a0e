// What may be said of a kind of job, and what the compiler makes of it.
import { document, standard, task } from 'pawl/rules'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { type Duration, toMs } from '../../src/core/durations.ts'
import { DefinitionInvalid } from '../../src/core/errors.ts'
import { createPawl } from '../../src/engine/create-pawl.ts'
import { defineJob } from '../../src/engine/define-job.ts'
import { StoreNameInvalid } from '../../src/engine/errors.ts'
import type { Pawl } from '../../src/engine/pawl.ts'
import { typed, validate } from '../../src/engine/schema.ts'
import { EngineBench } from './bench.ts'

describe('a duration', () => {
  it.each([
    ['250ms', 250],
    ['30s', 30_000],
    ['1.5m', 90_000],
    ['2h', 7_200_000],
    ['7d', 604_800_000],
    [1500, 1500],
    [0, 0],
  ] as [Duration, number][])('%s is %i milliseconds', (duration, ms) => {
    expect(toMs(duration, 'delay')).toBe(ms)
  })

  it.each(['', 's', '1 s', '-1s', '1f', '1e3s', '0x1s', '367d', -1, Number.NaN, Infinity])(
    '%j is refused, with the field that it stands in',
    (duration) => {
      const error = expect.objectContaining({
        code: 'E_DEFINITION_INVALID',
        message: expect.stringContaining('retry.delay'),
      })
      const ofDefinition = () => toMs(duration as Duration, 'retry.delay', DefinitionInvalid)
      expect(ofDefinition).toThrow(error)
      const command = expect.objectContaining({ code: 'E_COMMAND_INVALID' })
      expect(() => toMs(duration as Duration, 'delay')).toThrow(command)
    },
  )
})

describe('a definition', () => {
  it('has good defaults', () => {
    const job = defineJob({ name: 'plain' })
    expect(job).toMatchObject({ queue: 'default', lifecycle: standard, priority: 0 })
    expect([job.policy, job.timeoutMs, job.run, job.schema]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ])
  })

  it.each(['', ' ', 'a\nb', 'x'.repeat(256), '\ud800', 'nul\0'])('refuses the name %j', (name) => {
    expect(() => defineJob({ name })).toThrow(
      expect.objectContaining({ code: 'E_DEFINITION_INVALID' }),
    )
    expect(() => defineJob({ name: 'ok', queue: name })).toThrow(
      expect.objectContaining({ code: 'E_DEFINITION_INVALID' }),
    )
  })

  it('cannot change a retry policy that its lifecycle fixes', () => {
    for (const lifecycle of [document, task]) {
      const define = () => defineJob({ name: 'fixed', lifecycle, retry: { max: 9 } })
      expect(define).toThrow(expect.objectContaining({ code: 'E_DEFINITION_INVALID' }))
    }
  })

  it('merges its retry policy with that of its lifecycle', () => {
    const job = defineJob({ name: 'merged', retry: { max: 7, delay: '5s', delayMax: '1h' } })
    expect(job.policy?.retry).toMatchObject({ max: 7, delayMs: 5000, delayMaxMs: 3_600_000 })
    expect(defineJob({ name: 'word', retry: 'exponential' }).policy?.retry.backoff).toBe(
      'exponential',
    )
  })

  it('can be used without its code, which is added elsewhere', async () => {
    const key = defineJob({ name: 'split', input: typed<{ n: number }>() })
    const bench = await EngineBench.open([key.implement(({ input }) => input.n + 1)])
    const handle = await bench.pawl.enqueue(key, { n: 41 })
    await bench.work()
    const outcome = await bench.finish(handle.result())
    expect(outcome).toMatchObject({ kind: 'succeeded', output: 42 })
  })

  it('is unique by its name', async () => {
    const jobs = [defineJob({ name: 'twin' }), defineJob({ name: 'twin' })]
    await expect(createPawl({ store: 'sqlite::memory:', jobs })).rejects.toMatchObject({
      code: 'E_JOB_TYPE_TWICE',
    })
  })

  it('gives its types to enqueue, to the handler and to the result', () => {
    const job = defineJob({
      name: 'typed',
      input: typed<{ orderId: string }>(),
      run: ({ input }) => {
        expectTypeOf(input).toEqualTypeOf<{ orderId: string }>()
        return { number: 42 }
      },
    })
    const use = async (pawl: Pawl) => {
      const outcome = await (await pawl.enqueue(job, { orderId: 'o-1' })).result()
      if (outcome.kind === 'succeeded') {
        expectTypeOf(outcome.output).toEqualTypeOf<{ number: number }>()
      }
      // @ts-expect-error: a field is missing.
      await pawl.enqueue(job, {})
      // @ts-expect-error: a field has another type.
      await pawl.enqueue(job, { orderId: 1 })
      // @ts-expect-error: jobs are enqueued by their definitions.
      await pawl.enqueue('typed', { orderId: 'o-1' })
      // @ts-expect-error: a duration needs a unit.
      await pawl.enqueue(job, { orderId: 'o-1' }, { delay: '5' })
    }
    expect(use).toBeTypeOf('function')
  })
})

describe('a schema', () => {
  it('may answer later, and may throw, which is a refusal', async () => {
    const schemaOf = (check: (value: unknown) => never) => ({
      '~standard': { version: 1, vendor: 'test', validate: check } as const,
    })
    const later = schemaOf((async () => ({ value: 1 })) as () => never)
    expect(await validate(later, 0)).toEqual({ ok: true, value: 1 })
    const thrower = schemaOf(() => {
      throw new Error('broken')
    })
    expect(await validate(thrower, 0)).toMatchObject({ ok: false })
  })
})

describe('a store', () => {
  it.each(['', 'jobs.db', 'mysql://x', 'sqlite:'])('is not named by %j', async (store) => {
    await expect(createPawl({ store })).rejects.toThrow(StoreNameInvalid)
  })

  it('that was opened by somebody else stays open', async () => {
    const bench = await EngineBench.open([defineJob({ name: 'a' })])
    await bench.finish(bench.pawl.close())
    expect((await bench.store.counts()).lanes.ended).toBe(0)
  })
})
