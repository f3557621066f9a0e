// What the compiler refuses. `tsc` checks this file with all others: a line that compiles under
// `@ts-expect-error` is itself an error. Where a program without types could do the same, the
// running test shows that it is refused there as well.
import {
  defineJob,
  type JobError,
  type JobHandle,
  type Pawl,
  type RunnableJob,
  type Schema,
  typed,
} from 'pawl'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { EngineBench } from './bench.ts'

interface Order {
  readonly orderId: string
  readonly lines: readonly number[]
}
interface Invoice {
  readonly number: number
}

/** A schema that takes a text and gives a date, as real ones do. */
const dated: Schema<string, Date> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value) => ({ value: new Date(String(value)) }),
  },
}

const key = defineJob({ name: 'invoice', input: typed<Order>(), output: typed<Invoice>() })
const invoice = key.implement(({ input }) => ({ number: input.lines.length }))
const order: Order = { orderId: 'o-1', lines: [1, 2] }

/** Compiled, and never called. */
function compiled(_use: (pawl: Pawl) => unknown): void {}

describe('the compiler', () => {
  it('refuses an input that is not what the job takes', () => {
    compiled((pawl) => pawl.enqueue(invoice, order))
    // @ts-expect-error: a field is missing.
    compiled((pawl) => pawl.enqueue(invoice, { orderId: 'o-1' }))
    // @ts-expect-error: a field has another type.
    compiled((pawl) => pawl.enqueue(invoice, { ...order, lines: ['one'] }))
    // @ts-expect-error: there is no such field.
    compiled((pawl) => pawl.enqueue(invoice, { orderId: 'o-1', lines: [], rush: true }))
    // @ts-expect-error: one of many has another type.
    compiled((pawl) => pawl.enqueueMany(invoice, [{ input: order }, { input: 1 }]))
    const dateJob = defineJob({ name: 'date', input: dated, run: ({ input }) => input.getTime() })
    compiled((pawl) => pawl.enqueue(dateJob, '2026-01-01'))
    // @ts-expect-error: a caller gives what the schema takes, not what it makes of it.
    compiled((pawl) => pawl.enqueue(dateJob, new Date()))
  })

  it('lets the input be left out only if the job takes none', () => {
    const clean = defineJob({ name: 'clean', run: () => 1 })
    const report = defineJob({ name: 'report', input: typed<{ of: string } | undefined>() })
    compiled(async (pawl: Pawl) => {
      expectTypeOf(await pawl.enqueue(clean)).toEqualTypeOf<JobHandle<number>>()
      await pawl.enqueue(report)
      await pawl.enqueue(report, { of: 'today' }, { delay: '1m' })
      // @ts-expect-error: it takes an input
      await pawl.enqueue(invoice)
    })
  })

  it('refuses options that there are not', () => {
    // @ts-expect-error: it is called delay.
    compiled((pawl) => pawl.enqueue(invoice, order, { wait: '5s' }))
    // @ts-expect-error: it is called concurrency.
    compiled((pawl) => pawl.work({ threads: 3 }))
    // @ts-expect-error: there is no such answer to a taken key.
    compiled((pawl) => pawl.enqueue(invoice, order, { key: 'o-1', onConflict: 'ignore' }))
    // @ts-expect-error: a duration has a unit.
    compiled((pawl) => pawl.work({ lease: '30' }))
    // @ts-expect-error: it is called retry.
    compiled(() => defineJob({ name: 'x', retries: 3 }))
    // @ts-expect-error: nobody but a machine or a person recovers.
    compiled(() => defineJob({ name: 'x', recovery: 'never' }))
    // @ts-expect-error: a job has a name.
    compiled(() => defineJob({ run: () => 1 }))
  })

  it('refuses code that gives something else than the job does', () => {
    // @ts-expect-error: a text is no invoice.
    compiled(() => key.implement(() => 'done'))
    // @ts-expect-error: nor is the promise of one.
    compiled(() => key.implement(async () => ({ number: '42' })))
    // @ts-expect-error: what is declared and what the code gives must be the same.
    compiled(() => defineJob({ name: 'x', output: typed<Invoice>(), run: () => 'done' }))
    // Where nothing is declared, the code decides.
    const free = defineJob({ name: 'free' }).implement(() => 'anything')
    expectTypeOf(free).toExtend<RunnableJob<unknown, unknown, string>>()
  })

  it('accepts every type that can be stored, and interfaces and optional members', () => {
    interface Rich {
      readonly at: Date
      readonly n?: bigint
      readonly map: ReadonlyMap<string, Rich>
      set: Set<Date | undefined>
      readonly bytes: Uint8Array
      readonly tree: readonly Rich[]
      readonly any: unknown
    }
    class Row {
      id = 1
      readonly at = new Date(0)
    }
    const rich = defineJob({ name: 'rich', input: typed<Rich>(), output: typed<Rich | null>() })
    compiled(() => rich.implement(({ input }) => input))
    compiled(() => rich.implement(async ({ step }) => step('null', () => null)))
    compiled(() => defineJob({ name: 'x', run: () => new Row() }))
    compiled(() => defineJob({ name: 'x', run: () => {} }))
    compiled(() => defineJob({ name: 'x', run: async ({ commit }) => commit(() => [1n] as const) }))
    const named = defineJob({ name: 'x', run: async ({ step }) => step('a', async () => 1) })
    expectTypeOf(named).toExtend<RunnableJob<unknown, unknown, number>>()
  })

  it('refuses what cannot be stored', () => {
    interface Live {
      readonly id: string
      save(): void
    }
    const live = {} as Live
    // @ts-expect-error: a method cannot be stored.
    compiled(() => defineJob({ name: 'x', input: typed<{ readonly live: Live }>() }))
    // @ts-expect-error: nor can a symbol.
    compiled(() => defineJob({ name: 'x', output: typed<symbol>() }))
    // @ts-expect-error: nor a WeakMap.
    compiled(() => defineJob({ name: 'x', run: () => ({ cache: new WeakMap() }) }))
    // @ts-expect-error: nor an instance with methods in a list.
    compiled(() => defineJob({ name: 'x', run: async () => [live] }))
    // @ts-expect-error: nor a handle, which a handler returns by mistake.
    compiled((pawl) => defineJob({ name: 'x', run: () => pawl.enqueue(invoice, order) }))
    // @ts-expect-error: nor a function as the result of a step.
    compiled(() => defineJob({ name: 'x', run: ({ step }) => step('a', () => () => 1) }))
    const map = new Map([[1, live]])
    // @ts-expect-error: nor in a Map that a commit returns.
    compiled(() => defineJob({ name: 'x', run: ({ commit }) => commit(() => map) }))
    // @ts-expect-error: nor as the result of code that is added later.
    compiled(() => defineJob({ name: 'x' }).implement(() => live))
    compiled(() =>
      defineJob({
        name: 'x',
        effects: { send: (_: { readonly payload: Live }) => {} },
        run: ({ commit }) =>
          commit((tx) => {
            // @ts-expect-error: nor as the payload of an effect.
            tx.effect('send', live)
          }),
      }),
    )
  })

  it('refuses a handler that reads what its input does not have', () => {
    // @ts-expect-error: an order has no customer.
    compiled(() => key.implement(({ input }) => ({ number: input.customer })))
    // @ts-expect-error: without a schema nothing is known of the input.
    compiled(() => defineJob({ name: 'x', run: ({ input }) => input.orderId }))
    // @ts-expect-error: an attempt has no such thing.
    compiled(() => defineJob({ name: 'x', run: ({ retry }) => retry() }))
    defineJob({
      name: 'x',
      input: dated,
      run: ({ input }) => expectTypeOf(input).toEqualTypeOf<Date>(),
    })
  })

  it('refuses a job without code where code is needed, and so does the library', async () => {
    const bench = await EngineBench.open([key])
    // @ts-expect-error: the key alone cannot be run.
    await expect(bench.pawl.work({ jobs: [key] })).rejects.toThrow('has none')
    await expect(bench.pawl.work()).rejects.toThrow('with a handler')
    const stranger = defineJob({ name: 'stranger', run: () => 1 })
    await expect(bench.pawl.work({ jobs: [stranger] })).rejects.toThrow('stranger')
    await expect(bench.pawl.work({ jobs: [invoice, invoice] })).rejects.toThrow('invoice')
    await bench.work({ jobs: [invoice] })
    const handle = await bench.pawl.enqueue(key, order)
    expect(await bench.finish(handle.result())).toMatchObject({ output: { number: 2 } })
  })

  it('knows what a result holds once its kind is known, and not before', () => {
    compiled(async (pawl) => {
      const handle = await pawl.enqueue(key, order)
      expectTypeOf(handle).toEqualTypeOf<JobHandle<Invoice>>()
      const outcome = await handle.result()
      // @ts-expect-error: it may have failed.
      outcome.output.number.toFixed()
      switch (outcome.kind) {
        case 'succeeded':
          expectTypeOf(outcome.output).toEqualTypeOf<Invoice>()
          break
        case 'failed':
        case 'parked':
          expectTypeOf(outcome.error).toEqualTypeOf<JobError | null>()
          // @ts-expect-error: nothing came of it.
          outcome.output?.number.toFixed()
          break
        case 'cancelled':
          expectTypeOf(outcome.reason).toEqualTypeOf<string | null>()
          break
        default:
          expectTypeOf(outcome).toBeNever()
      }
    })
  })

  it('tells events apart by their type', () => {
    compiled((pawl) =>
      pawl.work({
        onEvent: (event) => {
          // @ts-expect-error: not every event is about a job.
          event.job.id.toUpperCase()
          if (event.type === 'refused') expectTypeOf(event.error.code).toEqualTypeOf<string>()
          if (event.type === 'stuck') expectTypeOf(event.forMs).toEqualTypeOf<number>()
        },
      }),
    )
  })
})
