// What the compiler refuses of schedules, and what the same does without types.
import { defineJob, defineSchedule, typed } from 'pawl'
import { DefinitionInvalid } from 'pawl/errors'
import { describe, expect, expectTypeOf, it } from 'vitest'

const report = defineJob({
  name: 'report',
  input: typed<{ region: string }>(),
  run: ({ schedule }) => {
    expectTypeOf(schedule?.tick).toEqualTypeOf<Date | undefined>()
    expectTypeOf(schedule?.previous).toEqualTypeOf<Date | undefined>()
    expectTypeOf(schedule?.late).toEqualTypeOf<boolean | undefined>()
  },
})
const clean = defineJob({ name: 'clean', run: () => {} })
const maybe = defineJob({ name: 'maybe', input: typed<number | undefined>(), run: () => {} })
const input = { region: 'eu' }

/** Compiled, and never called. */
function compiled(..._uses: (() => unknown)[]): void {}

describe('the compiler', () => {
  it('accepts schedules as they should be', () => {
    defineSchedule({ name: 's', job: report, input, cron: '* * * * *', timezone: 'Europe/Berlin' })
    defineSchedule({ name: 's', job: report, input, every: '15m', overlap: 'bufferAll' })
    defineSchedule({ name: 's', job: clean, every: 60_000, catchUp: 'all' })
    defineSchedule({ name: 's', job: maybe, every: '1h' })
    const job = defineJob({ name: 'report', input: typed<{ region: string }>() })
    defineSchedule({ name: 's', job, input, cron: '@daily', catchUp: { mode: 'none' } })
  })

  it('refuses inputs that the job does not take', () => {
    compiled(
      // @ts-expect-error: the job takes an input
      () => defineSchedule({ name: 's', job: report, every: '1h' }),
      // @ts-expect-error: it is of another type
      () => defineSchedule({ name: 's', job: report, input: { region: 5 }, every: '1h' }),
      // @ts-expect-error: it has a field too few
      () => defineSchedule({ name: 's', job: report, input: {}, every: '1h' }),
      // @ts-expect-error: it is of another type
      () => defineSchedule({ name: 's', job: maybe, input: 'x', every: '1h' }),
    )
  })

  it('refuses timings that contradict each other', () => {
    const base = { name: 's', job: clean }
    // @ts-expect-error: an interval has no time zone
    const zoned = () => defineSchedule({ ...base, every: '1h', timezone: 'UTC' })
    // @ts-expect-error: one of the two
    const both = () => defineSchedule({ ...base, every: '1h', cron: '* * * * *' })
    // @ts-expect-error: one of the two
    const none = () => defineSchedule({ ...base })
    // @ts-expect-error: no duration
    const odd = () => defineSchedule({ ...base, every: 'soon' })
    // @ts-expect-error: no such policy
    const policy = () => defineSchedule({ ...base, every: '1h', overlap: 'queue' })
    // @ts-expect-error: no such mode
    const mode = () => defineSchedule({ ...base, every: '1h', catchUp: { mode: 'some' } })
    for (const wrong of [zoned, both, none, odd, policy, mode]) {
      expect(wrong).toThrow(DefinitionInvalid)
    }
  })
})
