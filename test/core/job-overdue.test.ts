// How a job that waits past its deadline is ended.
import type { Fact, Job, Lifecycle } from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { evolve } from '../../src/core/job/evolve.ts'
import { laneOf } from '../../src/core/job/lanes.ts'
import { overdueFacts } from '../../src/core/job/overdue.ts'
import { EVERY_LIFECYCLE } from './job-play.ts'

const CLAIM = '00000000-0000-7000-8000-000000000001'
const OPERATOR = { actor: 'operator', operator: 'ann', note: 'a reason' } as const

describe.each(EVERY_LIFECYCLE.map((one) => [one.name, one] as const))(
  'a job of lifecycle %s that waits past its deadline',
  (_name, lifecycle) => {
    it.each([
      ['is ready', 0],
      ['has become due', 500],
      ['is due later', 60_000],
    ])('is ended without an attempt that starts, if it %s', (_where, delayMs) => {
      const script = waiting(lifecycle, delayMs)
      script.clock.advance(999)
      expect(factsOf(script)).toEqual([])
      script.clock.advance(1)
      const facts = factsOf(script)
      const ended = facts.reduce<Job>((job, fact) => evolve(job, fact), script.job)
      expect(ended).toMatchObject({ attempt: 1, error: { kind: 'deadline', type: 'TERMINAL' } })
      expect(['ended', 'parked']).toContain(laneOf(lifecycle, ended, script.clock.now()))
      expect(facts.at(-2)).toMatchObject({
        trigger: 'claim',
        actor: 'engine',
        execution: { statuses: ['LEASED'], worker: 'engine', claim: CLAIM },
      })
      expect(facts.at(-1)).toMatchObject({ trigger: 'fail', reason: 'deadline' })
      expect(facts.map(({ seq }) => seq)).toEqual(facts.map((_, i) => script.job.seq + 1 + i))
    })

    it('is left alone if it is held, or waits for a person', () => {
      const held = waiting(lifecycle, 0)
      held.claim()
      held.clock.advance(1000)
      expect(factsOf(held)).toEqual([])
      const parked = waiting(lifecycle, 0)
      parked.applyCommand({ kind: 'park' }, OPERATOR)
      parked.clock.advance(1000)
      expect(factsOf(parked)).toEqual([])
    })
  },
)

function waiting(lifecycle: Lifecycle, delayMs: number): JobScript {
  const script = new JobScript(lifecycle)
  const now = script.clock.now()
  script.create({ deadlineAt: now + 1000, runAt: now + delayMs })
  return script
}

function factsOf({ lifecycle, job, clock }: JobScript): Fact[] {
  return overdueFacts(lifecycle, job, { now: clock.now(), random: 0, actor: 'engine' }, CLAIM)
}
