// What the compiler knows about jobs that wait and about jobs that come after others. A program
// without types can do the same, and the running test shows that it is refused there as well.
import {
  AfterMissing,
  type ChildOutcome,
  defineJob,
  defineSchedule,
  type Effects,
  type JobContext,
  type Lifecycle,
  type Pawl,
  type RunnableJob,
  settled,
  typed,
} from 'pawl'
import { leased, standard } from 'pawl/define'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { EngineBench } from './bench.ts'

/** Compiled, and never called. */
function compiled(_use: (pawl: Pawl) => unknown): void {}

const render = defineJob({
  name: 'render',
  input: typed<{ page: number }>(),
  run: ({ input }) => `page ${input.page}`,
})
const invoice = defineJob({ name: 'invoice', output: typed<{ invoiced: number }>() })
const notify = defineJob({ name: 'notify', input: typed<{ to: string }>(), run: () => true })
const report = defineJob({
  name: 'report',
  input: typed<{ month: string }>(),
  after: { pages: [render], bill: invoice, mail: settled(notify), mails: settled([notify]) },
  run: ({ after, input }) => {
    expectTypeOf(after.pages).toEqualTypeOf<readonly string[]>()
    expectTypeOf(after.bill).toEqualTypeOf<{ invoiced: number }>()
    expectTypeOf(after.mail).toEqualTypeOf<ChildOutcome<boolean>>()
    expectTypeOf(after.mails).toEqualTypeOf<readonly ChildOutcome<boolean>[]>()
    expectTypeOf(input).toEqualTypeOf<{ month: string }>()
    return after.pages.length
  },
})

describe('waits in the context of a handler', () => {
  it('are there if the lifecycle can wait, and `standard` is the default', () => {
    compiled(() => defineJob({ name: 'x', run: ({ sleep }) => sleep('a', '1s') }))
    compiled(() =>
      defineJob({ name: 'x', lifecycle: standard, run: ({ sleep }) => sleep('a', '1s') }),
    )
    compiled(() => defineJob({ name: 'x' }).implement(({ sleep }) => sleep('a', '1s')))
    type Waiting = JobContext<unknown, Effects, never, true>
    compiled(() => defineJob({ name: 'x', run: ({ sleep }: Waiting) => sleep('a', '1s') }))
  })

  it('are not there if the lifecycle cannot wait, or is not known', () => {
    // @ts-expect-error: a job of `leased` cannot sleep.
    compiled(() => defineJob({ name: 'x', lifecycle: leased, run: ({ sleep }) => sleep('a', 1) }))
    compiled(() =>
      // @ts-expect-error: nor wait for a signal.
      defineJob({ name: 'x', lifecycle: leased, run: ({ waitForSignal }) => waitForSignal }),
    )
    const key = defineJob({ name: 'x', lifecycle: leased })
    // @ts-expect-error: nor if the handler is added later.
    compiled(() => key.implement(({ sleep }) => sleep('a', 1)))
    const some = standard as Lifecycle
    // @ts-expect-error: nor if the lifecycle is known only at run time.
    compiled(() => defineJob({ name: 'x', lifecycle: some, run: ({ sleep }) => sleep('a', 1) }))
    const plain = defineJob({ name: 'x', lifecycle: leased, run: ({ step }) => step('a', () => 1) })
    expectTypeOf(plain).toExtend<RunnableJob<unknown, unknown, number>>()
    compiled((pawl) => pawl.enqueue(plain, null))
  })
})

describe('a job type with `after`', () => {
  it('has the outputs of what it comes after in the context of its handler', () => {
    expectTypeOf(report).toExtend<
      RunnableJob<{ month: string }, { month: string }, number, true, typeof report.after>
    >()
    const key = defineJob({ name: 'x', after: { bill: invoice } })
    compiled(() => key.implement(({ after }) => after.bill.invoiced))
    // @ts-expect-error: there is no such name.
    compiled(() => key.implement(({ after }) => after.pages))
    // @ts-expect-error: a job type without `after` has none.
    compiled(() => defineJob({ name: 'x', run: ({ after }) => after }))
    // @ts-expect-error: a list has exactly one job type.
    compiled(() => defineJob({ name: 'x', after: { pages: [render, invoice] } }))
    // @ts-expect-error: a text is no job type.
    compiled(() => defineJob({ name: 'x', after: { pages: 'render' } }))
  })

  it('cannot be enqueued or scheduled alone, and the library refuses it', async () => {
    const bench = await EngineBench.open([render, report])
    const { pawl } = bench
    const input = { month: '11' }
    const refusal = {
      code: 'E_AFTER_MISSING',
      details: { type: 'report', after: ['pages', 'bill', 'mail', 'mails'] },
    }
    // @ts-expect-error: `after` is missing.
    await expect(pawl.enqueue(report, input)).rejects.toMatchObject(refusal)
    // @ts-expect-error: `after` is missing.
    await expect(pawl.enqueueMany(report, [{ input }])).rejects.toBeInstanceOf(AfterMissing)
    const stream = (function* () {
      yield { input }
    })()
    // @ts-expect-error: `after` is missing.
    await expect(pawl.enqueueMany(report, stream)).rejects.toMatchObject({ cause: refusal })
    // @ts-expect-error: a schedule cannot make it.
    expect(() => defineSchedule({ name: 'x', job: report, input, every: '1h' })).toThrow(
      'must not have `after`',
    )
    const spawn = defineJob({
      name: 'spawn',
      run: async ({ enqueue, commit }) => {
        // @ts-expect-error: a handler cannot enqueue it.
        await enqueue(report, input).catch((error) => expect(error).toMatchObject(refusal))
        // @ts-expect-error: nor can a commit.
        return commit((tx) => tx.enqueue(report, input).then(() => 'enqueued'))
      },
    })
    const own = await EngineBench.open([spawn, report])
    await own.work()
    const handle = await own.pawl.enqueue(spawn, null)
    const outcome = await own.finish(handle.result())
    expect(outcome).toMatchObject({ error: { code: 'E_AFTER_MISSING' } })
  })

  it.each([
    ['no names', {}, 'must have from 1 to 32 names'],
    ['a value that is no job type', { a: 1 }, 'after.a'],
    ['two job types in a list', { a: [render, invoice] }, 'after.a'],
    ['an empty list', { a: [] }, 'after.a'],
    ['settled of nothing', { a: settled(undefined as never) }, 'after.a'],
    ['an empty name', { '': render }, 'after'],
  ])('is refused with %s', (_, after, message) => {
    expect(() => defineJob({ name: 'x', after: after as never })).toThrow(message)
  })
})
