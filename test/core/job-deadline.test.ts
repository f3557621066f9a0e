// Past the deadline of a job nothing starts and nothing commits.
import { DeadlinePassed } from 'pawl'
import { executionsOf, type Lifecycle } from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { EVERY_LIFECYCLE, FINAL } from './job-play.ts'

describe.each(EVERY_LIFECYCLE.map((one) => [one.name, one] as const))(
  'a job of lifecycle %s past its deadline',
  (_name, lifecycle) => {
    it('is leased to be ended, and its attempt does not start', () => {
      const script = late(lifecycle, 0)
      expect(executionsOf(script.facts)).toMatchObject([{ status: 'LEASED', startedAt: null }])
      const { fence } = script
      expect(script.applyCommand({ kind: 'start', fence })).toMatchObject(PASSED)
      expect(script.applyCommand({ kind: 'fail', fence, failure: FINAL }).kind).toBe('fact')
    })

    it('records no step and commits nothing, from the very millisecond on', () => {
      const script = late(lifecycle, 1)
      expect(script.applyCommand(step(script, 1)).kind).toBe('fact')
      script.clock.advance(1)
      expect(script.applyCommand(step(script, 2))).toMatchObject(PASSED)
      const { fence } = script
      const answer = script.applyCommand({ kind: 'commit', fence })
      expect(answer).toMatchObject(PASSED)
      expect((answer as { error?: unknown }).error).toBeInstanceOf(DeadlinePassed)
      expect(script.applyCommand({ kind: 'release', fence }).kind).toBe('fact')
    })

    it('stays committed if it was committed before', () => {
      const script = late(lifecycle, 1)
      const { fence } = script
      expect(script.applyCommand({ kind: 'commit', fence, effects: 1 }).kind).toBe('fact')
      script.clock.advance(1)
      expect(script.applyCommand({ kind: 'commit', fence })).toEqual({ kind: 'same' })
      expect(script.applyCommand({ kind: 'done', attempt: 1 }).kind).toBe('fact')
    })
  },
)

const PASSED = { kind: 'rejected', error: { code: 'E_DEADLINE_PASSED' } } as const

/** A claimed job with so many milliseconds left when it was claimed. */
function late(lifecycle: Lifecycle, leftMs: number): JobScript {
  const script = new JobScript(lifecycle)
  script.create({ deadlineAt: script.clock.now() + 1000 })
  script.clock.advance(1000 - leftMs)
  script.claim()
  return script
}

function step({ fence }: JobScript, n: number) {
  return { kind: 'step', fence, name: 'charge', n } as const
}
