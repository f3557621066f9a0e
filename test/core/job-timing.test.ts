// The times that the fact which closes an attempt records.
import { decide, executionsOf, type Fact, leased, standard } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { queueMsOf, timingOf } from '../../src/core/job/timing.ts'
import { awaken, crash, EVERY_LIFECYCLE, FINAL, factOf, played, TRANSIENT } from './job-play.ts'

const closings = (facts: readonly Fact[]) => facts.filter(({ timing }) => timing !== undefined)

describe('the times of an attempt', () => {
  it('are on each fact that closes one, and on no other', () => {
    for (const lifecycle of EVERY_LIFECYCLE) {
      const script = played(lifecycle, 'create', 'claim')
      crash(script)
      const [closing, ...others] = closings(script.facts)
      const closed = executionsOf(script.facts).map(({ timing }) => timing)
      expect(others).toEqual([])
      expect(closing?.execution?.statuses).toEqual(['ABORTED'])
      expect(closed).toEqual([closing?.timing])
    }
  })

  it('start again with the due time of each attempt', () => {
    const script = played(standard, 'create')
    script.clock.advance(40)
    script.claim()
    script.clock.advance(7)
    script.applyCommand({ kind: 'fail', fence: script.fence, failure: TRANSIENT })
    awaken(script)
    const { runAt } = script.job as { runAt: number }
    const late = script.clock.now() - runAt
    script.claim()
    script.clock.advance(3)
    script.applyCommand({ kind: 'fail', fence: script.fence, failure: FINAL })
    expect(closings(script.facts).map(({ timing }) => timing)).toEqual([
      { queueMs: 40, durationMs: 7 },
      { queueMs: late, durationMs: 3 },
    ])
  })

  it('are never negative if the clock is set back', () => {
    const script = played(standard, 'create', 'claim')
    const context = { now: script.clock.now() - 5000, random: 0, actor: 'worker' } as const
    const command = { kind: 'release', fence: script.fence } as const
    const fact = factOf(decide(standard, script.job, command, context))
    expect(fact.timing).toEqual({ queueMs: 0, durationMs: 0 })
  })

  it('of a job that is cancelled before it is due are zero', () => {
    const script = played(leased, 'create', 'cancel')
    expect(closings(script.facts)).toMatchObject([{ timing: { queueMs: 0, durationMs: 0 } }])
  })

  it('are 0 for an attempt whose start is not known', () => {
    const job = { runAt: 5, createdAt: 1, startedAt: null }
    const times = { queueMs: 4, durationMs: 0 }
    expect(timingOf(job, { statuses: ['ABORTED'] }, 9)).toEqual(times)
  })

  it('of a job that was never due have no wait', () => {
    expect(queueMsOf({ runAt: null }, 9)).toBe(0)
    expect(queueMsOf({ runAt: 5 }, 9)).toBe(4)
  })
})
