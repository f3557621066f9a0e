// P15 in the small: once faults stop, every job ends or is parked with a reason. Faults and their
// timing belong to the simulator; here it is shown that no state of any lifecycle is a trap.
import fc from 'fast-check'
import { checkFacts, type Decision, defineLifecycle, isCommitted, laneOf } from 'pawl/rules'
import type { JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { isWaiter } from '../../src/core/job/links.ts'
import { EVERY_LIFECYCLE, FINAL, played } from '../core/job-play.ts'
import { histories } from '../support/random-history.ts'
import { lines } from './tamper.ts'

type Ending = 'commit' | 'fail'

/** Everything that a job waits for came out as needed. */
const ARRIVED = { open: false, hit: '00000000-0000-7000-8000-0000000000aa' }

/** What a healthy system does next with a job: workers work, operators look after the parked. */
function healingStep(script: JobScript, ending: Ending): Decision {
  const { job, lifecycle, clock } = script
  if (isCommitted(job)) return script.applyCommand({ kind: 'done', attempt: job.attempt })
  if (job.execution !== null) {
    const { fence } = script
    if (job.execution.leaseUntil <= clock.now()) {
      return script.operate({ kind: 'expire', fence, approved: true })
    }
    if (job.execution.status === 'LEASED') return script.applyCommand({ kind: 'start', fence })
    return ending === 'commit'
      ? script.applyCommand({ kind: 'commit', fence, effects: job.attempt % 2 })
      : script.applyCommand({ kind: 'fail', fence, failure: FINAL })
  }
  const lane = laneOf(lifecycle, job, clock.now())
  if (lane === 'parked' && job.blockedReason !== 'dependency_failed') {
    return script.operate({ kind: 'redrive', arrived: true })
  }
  // What it waits for has ended.
  if (isWaiter(job)) return script.applyCommand({ kind: 'arrive', look: ARRIVED })
  if (lane === 'idle') return script.applyCommand({ kind: 'submit' })
  clock.advance(Math.max(0, (job.runAt ?? 0) - clock.now()))
  return job.state === lifecycle.ready ? script.claim() : script.applyCommand({ kind: 'due' })
}

/** Heals until the job has ended; a job takes few steps for that, or is in a trap. */
function heal(script: JobScript, ending: Ending, until: () => boolean): void {
  for (let step = 0; step < 10 && !until(); step++) {
    const answer = healingStep(script, ending)
    expect(answer.kind, JSON.stringify(answer)).toBe('fact')
  }
  expect(until()).toBe(true)
}

const laneNow = ({ lifecycle, job, clock }: JobScript) => laneOf(lifecycle, job, clock.now())

describe('P15 in the small, every job can end', () => {
  const anyHistory = histories({ lifecycles: EVERY_LIFECYCLE })

  it('by succeeding, from wherever a history has led it', () => {
    fc.assert(
      fc.property(anyHistory, ({ script }) => {
        const ended = script.job.outcome
        heal(script, 'commit', () => script.job.outcome !== null)
        // A lease that had run out before may have been the one crash too many.
        if (script.job.outcome !== (ended ?? 'succeeded')) {
          expect(script.job.reason).toMatch(/_exhausted$/)
        }
        expect(lines(checkFacts(script.lifecycle, script.facts))).toEqual([])
      }),
      { numRuns: 300 },
    )
  })

  it('by failing for good, or by being parked with a reason where failing means that', () => {
    fc.assert(
      fc.property(anyHistory, ({ script }) => {
        // Whoever was parked before is redriven first, so that the end is that of a failure.
        if (laneNow(script) === 'parked') script.operate({ kind: 'redrive', arrived: true })
        heal(script, 'fail', () => ['ended', 'parked'].includes(laneNow(script)))
        if (script.job.outcome === null) {
          expect(['hardened', 'standard']).toContain(script.lifecycle.name)
          expect(script.job.reason).toMatch(/^validation$|_exhausted$/)
        }
        expect(lines(checkFacts(script.lifecycle, script.facts))).toEqual([])
      }),
      { numRuns: 300 },
    )
  })

  it('by being cancelled, unless its effect is true already', () => {
    fc.assert(
      fc.property(anyHistory, ({ script }) => {
        const committed = isCommitted(script.job)
        const { outcome } = script.job
        const answer = script.applyCommand({ kind: 'cancel' })
        if (committed) expect(answer).toMatchObject({ error: { code: 'E_COMMITTED' } })
        else if (outcome === null) expect(['ended', 'parked']).toContain(laneNow(script))
        expect(lines(checkFacts(script.lifecycle, script.facts))).toEqual([])
      }),
      { numRuns: 300 },
    )
  })
})

describe('P15 in the small, every job that has not ended', () => {
  it('has a reason while it is parked', () => {
    fc.assert(
      fc.property(
        histories({ lifecycles: EVERY_LIFECYCLE }),
        ({ script: { job, lifecycle, clock } }) => {
          const parked = laneOf(lifecycle, job, clock.now()) === 'parked'
          if (parked) expect(job.blockedReason ?? job.reason).toBeTruthy()
        },
      ),
      { numRuns: 300 },
    )
  })

  it('was not given up: no lifecycle can be defined that sends such a job back', () => {
    for (const trigger of ['fail', 'give-up', 'reject', 'cancel'] as const) {
      const others = (['fail', 'give-up', 'reject', 'cancel'] as const).filter(
        (other) => other !== trigger,
      )
      const define = () =>
        defineLifecycle({
          name: 'treadmill',
          version: 1,
          initial: 'open',
          states: {
            open: { role: 'ready', meaning: 'May be claimed.' },
            busy: { role: 'held', meaning: 'Is being worked on.' },
            good: { role: 'succeeded', meaning: 'Went well.' },
            bad: { role: 'failed', meaning: 'Went wrong.' },
          },
          edges: [
            { from: 'open', to: 'busy', on: ['claim'] },
            { from: 'busy', to: 'good', on: ['succeed'] },
            { from: 'busy', to: 'open', on: ['expire', 'release', trigger] },
            { from: 'busy', to: 'bad', on: others },
          ],
        })
      expect(define).toThrow(`${trigger} must end or park the job`)
    }
  })

  it('can go on while it is held, by the expiry of its lease alone', () => {
    for (const lifecycle of EVERY_LIFECYCLE) {
      for (const move of ['lease', 'claim'] as const) {
        const script = played(lifecycle, 'create', move)
        const { fence } = script
        script.clock.advance(30_000)
        script.applyCommand({ kind: 'expire', fence }, { actor: 'engine' })
        heal(script, 'commit', () => script.job.outcome === 'succeeded')
        expect(script.job.attempt).toBe(2)
      }
    }
  })
})
