/** Priorities that age, as programs use them: `priority: { ahead: '2m' }`. */
import { describe, expect, it } from 'vitest'
import { defineSchedule } from '../../src/engine/schedules/define-schedule.ts'
import { createPawl, defineJob, type Pawl, type Priority, typed } from '../../src/index.ts'
import { createTestPawl } from '../../src/testing/test-pawl.ts'

const BAD: [unknown, RegExp][] = [
  [{ ahead: '2 minutes' }, /priority\.ahead.*must be milliseconds or a text such as/],
  [{ ahead: -1 }, /priority\.ahead.*must be milliseconds/],
  [{ ahead: Number.NaN }, /priority\.ahead.*must be milliseconds/],
  [{ ahead: '25h' }, /priority\.ahead.*must not be more than a day/],
  [{ ahead: '2m', number: 3 }, /priority\.number.*is not known/],
  [{}, /priority.*must be a whole number or \{ ahead: '2m' \}/],
  [null, /priority.*must be a whole number or \{ ahead: '2m' \}/],
  ['2m', /priority.*must be a whole number or \{ ahead: '2m' \}/],
  [['2m'], /priority.*must be a whole number or \{ ahead: '2m' \}/],
]

describe('a job that is ahead', () => {
  it('is claimed as if it had been due so much earlier, by its type or option', async () => {
    const order: string[] = []
    const note = defineJob({
      name: 'note',
      input: typed<string>(),
      run: ({ input }) => {
        order.push(input)
      },
    })
    const quick = defineJob({ ...QUICK, run: ({ input }) => void order.push(input) })
    await using test = await createTestPawl({ jobs: [note, quick] })
    const { pawl } = test
    await pawl.enqueue(note, 'old')
    await test.advance(121_000)
    await pawl.enqueue(note, 'young')
    await pawl.enqueue(quick, 'two minutes ahead')
    await pawl.enqueue(note, 'one minute ahead', { priority: { ahead: 60_000 } })
    await pawl.enqueue(quick, 'first', { priority: -1 })
    await test.drain()
    expect(order).toEqual(['first', 'old', 'two minutes ahead', 'one minute ahead', 'young'])
  })

  it('says so in its facts, in explain and after a change by an operator', async () => {
    const { job, pawl } = await held()
    const { id } = await pawl.enqueue(job, 'x')
    expect((await pawl.store.facts(id))[0]).toMatchObject({ priority: 0, aheadMs: 120_000 })
    const operator = pawl.operator({ name: 'ann', reason: 'INC-7' })
    expect((await pawl.explain(id)).says).toContain('ordered as if it had been due 2m earlier')
    expect(await operator.prioritise(id, { ahead: '2m' })).toMatchObject({ same: 1 })
    expect(await operator.prioritise(id, { ahead: '1d' })).toMatchObject({ done: 1 })
    expect(await pawl.store.get(id)).toMatchObject({ priority: 0, aheadMs: 86_400_000 })
    expect(await operator.prioritise(id, 5)).toMatchObject({ done: 1 })
    expect(await pawl.store.get(id)).toMatchObject({ priority: 5, aheadMs: 0 })
    const facts = await pawl.store.facts(id)
    expect(facts.slice(1).map(({ priority, aheadMs }) => [priority, aheadMs])).toEqual([
      [0, 86_400_000],
      [5, 0],
    ])
  })

  it('keeps it in a copy, and gets it from a replacement and from a schedule', async () => {
    const { job, pawl } = await held()
    const { id } = await pawl.enqueue(job, 'x', { key: 'k', priority: 3 })
    const replaced = { key: 'k', onConflict: 'replace', priority: { ahead: '1m' } } as const
    await pawl.enqueue(job, 'y', replaced)
    expect(await pawl.store.get(id)).toMatchObject({ priority: 0, aheadMs: 60_000 })
    const operator = pawl.operator({ name: 'ann', reason: 'INC-7' })
    await operator.cancel(id)
    const [copy] = (await operator.copy(id)).copies
    expect(await pawl.store.get(copy?.id ?? '')).toMatchObject({ priority: 0, aheadMs: 60_000 })
    const hourly = defineSchedule({ name: 'hourly', job, input: 'z', every: '1h' })
    await using other = await createPawl({
      store: 'sqlite::memory:',
      jobs: [job],
      schedules: [hourly],
    })
    const ran = await other.operator({ name: 'ann', reason: 'INC-7' }).runScheduleNow('hourly')
    expect(await other.store.get(ran.job ?? '')).toMatchObject({ priority: 0, aheadMs: 120_000 })
  })

  it.each(BAD)('cannot be ahead by %o', async (priority, why) => {
    const { job, pawl } = await held()
    const wrong = { priority: priority as Priority }
    expect(() => defineJob({ name: 'bad', ...wrong })).toThrow(why)
    await expect(pawl.enqueue(job, 'x', wrong)).rejects.toThrow(why)
    const operator = pawl.operator({ name: 'ann', reason: 'INC-7' })
    await expect(operator.prioritise({ all: true }, wrong.priority)).rejects.toThrow(why)
    expect((await pawl.store.counts()).lanes.ready).toBe(0)
  })

  it('has either a number or a time, which the compiler knows', () => {
    const compiled = (_use: (pawl: Pawl) => unknown) => undefined
    const job = defineJob({ name: 'job', input: typed<string>() })
    compiled((pawl) => pawl.enqueue(job, 'x', { priority: { ahead: '2m' } }))
    // @ts-expect-error: a text is not a time.
    compiled((pawl) => pawl.enqueue(job, 'x', { priority: { ahead: 'soon' } }))
    // @ts-expect-error: it is a field of an object.
    compiled((pawl) => pawl.enqueue(job, 'x', { priority: '2m' }))
    // @ts-expect-error: the number of a job that is ahead is 0.
    compiled((pawl) => pawl.enqueue(job, 'x', { priority: { ahead: '2m', number: 1 } }))
    // @ts-expect-error: a job is ahead by some time.
    compiled(() => defineJob({ name: 'other', priority: {} }))
    expect(job.aheadMs).toBe(0)
  })
})

const QUICK = { name: 'quick', input: typed<string>(), priority: { ahead: '2m' } } as const

async function held() {
  const job = defineJob(QUICK)
  const pawl = await createPawl({ store: 'sqlite::memory:', jobs: [job] })
  return { job, pawl }
}
