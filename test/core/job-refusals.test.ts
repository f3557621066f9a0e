// What a refused command says: which edge takes the job there, and which commands it has.
import { describe, expect, it } from 'vitest'
import { decide } from '../../src/core/job/decide.ts'
import { enteredAt, type Job } from '../../src/core/job/job.ts'
import { hardened } from '../../src/core/lifecycles/hardened.ts'
import { standard } from '../../src/core/lifecycles/standard.ts'
import { played } from './job-play.ts'

const ADA = { actor: 'operator', operator: 'ada', note: 'INC-7', now: 0, random: 0 } as const

describe('a refused command', () => {
  it('that names an edge of the table says who takes it, where it applies and what does', () => {
    const failed = { ...jobIn('failed'), lifecycle: 'hardened' }
    const decision = decide(hardened, failed, { kind: 'redrive' }, ADA)
    expect(decision).toMatchObject({
      kind: 'rejected',
      error: {
        message:
          'Invalid transition: failed → pending: ' +
          'only due, run-now, expire, release takes this edge, not redrive',
        hint:
          'In machine "hardened", redrive does not apply in failed. It applies in quarantined. ' +
          'Commands for a job in failed: retry, cancel, quarantine.',
      },
    })
  })

  it('in a state that has none says so', () => {
    const done = jobIn('succeeded')
    const decision = decide(standard, { ...done, execution: null }, { kind: 'discard' }, ADA)
    expect(decision).toMatchObject({
      kind: 'rejected',
      error: {
        message: 'Invalid transition: succeeded → failed',
        hint: expect.stringMatching(/Commands for a job in succeeded: none\.$/),
      },
    })
  })

  it('that forces a job says where it may lead, and why not there', () => {
    const force = (from: string, to: string) => {
      const decision = decide(standard, jobIn(from), { kind: 'force', to }, ADA)
      if (decision.kind !== 'rejected') throw new Error('was not refused')
      return [decision.error.message, decision.error.hint]
    }
    expect(force('queued', 'succeeded')).toEqual([
      'Invalid transition: queued → succeeded',
      expect.stringMatching(/force never leads to a succeeded state; it may lead to created/),
    ])
    expect(force('queued', 'running')[0]).toBe(
      'Invalid transition: queued → running: force never leads to a held state',
    )
    expect(force('queued', 'lost')[1]).toMatch(/has no state lost/)
  })
})

describe('the time at which a job came into its state', () => {
  it('is the start of its attempt, or that of its last fact', () => {
    const job = { ...jobIn('queued'), updatedAt: 7, startedAt: 3 }
    const execution = { status: 'LEASED', claim: 'c', worker: 'w', leaseUntil: 9 } as const
    expect(enteredAt(job)).toBe(7)
    expect(enteredAt({ ...job, execution })).toBe(3)
    expect(enteredAt({ ...job, execution, startedAt: null })).toBe(7)
  })
})

function jobIn(state: string): Job {
  return { ...played(standard, 'create').job, state }
}
