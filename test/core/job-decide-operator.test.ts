// What a person may do to a job: park, redrive, discard, force, repair, and approve a recovery.
import type { Lifecycle } from 'pawl'
import { document, hardened, leased, standard, task } from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import {
  awaken,
  crash,
  EVERY_LIFECYCLE,
  errorOf,
  factOf,
  played,
  policyWith,
  staleness,
  statesOf,
  tiny,
  wordOf,
} from './job-play.ts'

const WITHOUT_PARKED_STATE: readonly Lifecycle[] = [leased, document, task, tiny]

describe('a parked job of a lifecycle with a parked state', () => {
  it('goes there from every state that has not ended', () => {
    const cases: [JobScript, string][] = [
      [played(standard, 'hold'), 'created quarantined'],
      [played(standard, 'delay'), 'scheduled quarantined'],
      [played(standard, 'create'), 'queued quarantined'],
      [played(standard, 'create', 'claim'), 'running quarantined'],
      [played(standard, 'create', 'claim', 'retry'), 'retrying quarantined'],
      [played(hardened, 'create', 'claim'), 'running failed quarantined'],
      [played(hardened, 'create', 'claim', 'retry'), 'failed quarantined'],
    ]
    for (const [script, states] of cases) {
      const fact = factOf(script.operate({ kind: 'park' }))
      expect(statesOf(fact).join(' ')).toBe(states)
      expect(fact).toMatchObject({ trigger: 'park', reason: 'parked', operator: 'ann' })
      expect(script.job).toMatchObject({ execution: null, outcome: null, blockedReason: null })
      expect(wordOf(script.operate({ kind: 'park' }))).toBe('same')
    }
  })

  it('loses its holder, whose attempt is aborted as forced', () => {
    const script = played(standard, 'create', 'claim')
    const { fence } = script
    expect(factOf(script.operate({ kind: 'park' })).execution).toMatchObject({
      attempt: 1,
      statuses: ['ABORTED'],
      abort: 'forced',
    })
    expect(staleness(script.applyCommand({ kind: 'commit', fence }))).toBe('not-held')
  })

  it('passes the held state by an attempt of the engine where there is no other way', () => {
    const script = played(hardened, 'create')
    const fact = factOf(script.operate({ kind: 'park' }))
    expect(statesOf(fact)).toEqual(['pending', 'running', 'failed', 'quarantined'])
    expect(fact.execution).toMatchObject({
      attempt: 1,
      statuses: ['LEASED', 'ABORTED'],
      worker: 'engine',
      abort: 'forced',
    })
  })

  it('cannot be one that has ended', () => {
    const park = { kind: 'park' } as const
    const failed = played(standard, 'create', 'claim', 'fail')
    expect(wordOf(failed.operate(park))).toBe('E_TRANSITION_INVALID')
    const succeeded = played(standard, 'create', 'claim', 'commit')
    expect(wordOf(succeeded.operate(park))).toBe('E_COMMITTED')
  })
})

describe('a parked job of a lifecycle without a parked state', () => {
  it('keeps its state and carries the reason', () => {
    for (const lifecycle of WITHOUT_PARKED_STATE) {
      const script = played(lifecycle, 'create')
      const fact = factOf(script.operate({ kind: 'park' }))
      expect(statesOf(fact)).toEqual([lifecycle.ready, lifecycle.ready])
      expect(fact).toMatchObject({ blockedReason: 'parked', reason: 'parked' })
      expect(fact).not.toHaveProperty('execution')
      expect(script.job).toMatchObject({ state: lifecycle.ready, blockedReason: 'parked' })
      expect(wordOf(script.operate({ kind: 'park' }))).toBe('same')
    }
  })

  it('is given back first where it was running, at no cost', () => {
    const paths: Record<string, string> = {
      leased: 'RUNNING PENDING',
      document: 'RUNNING RETRYING QUEUED',
      task: 'running pending',
      tiny: 'busy open',
    }
    for (const lifecycle of WITHOUT_PARKED_STATE) {
      const script = played(lifecycle, 'create', 'claim')
      const { fence } = script
      const fact = factOf(script.operate({ kind: 'park' }))
      expect(statesOf(fact).join(' ')).toBe(paths[lifecycle.name])
      expect(fact.execution).toMatchObject({ statuses: ['ABORTED'], abort: 'forced' })
      expect(fact).not.toHaveProperty('spends')
      expect(script.job).toMatchObject({ blockedReason: 'parked', releases: 0, execution: null })
      expect(script.job.runAt).toBe(script.clock.now())
      expect(staleness(script.applyCommand({ kind: 'release', fence }))).toBe('not-held')
    }
  })

  it('cannot be one that has ended', () => {
    for (const lifecycle of WITHOUT_PARKED_STATE) {
      const answer = played(lifecycle, 'create', 'claim', 'fail').operate({ kind: 'park' })
      expect(wordOf(answer)).toBe('E_JOB_ENDED')
    }
  })

  it('is taken out of the flow until it is redriven or cancelled, whichever actor asks', () => {
    const idle = () => played(document, 'hold', 'park')
    const delayed = () => played(document, 'delay', 'park')
    const queued = () => played(document, 'create', 'park')
    expect(wordOf(queued().claim())).toBe('E_JOB_PARKED')
    expect(wordOf(idle().applyCommand({ kind: 'submit' }))).toBe('E_JOB_PARKED')
    expect(wordOf(idle().applyCommand({ kind: 'schedule', runAt: 0 }))).toBe('E_JOB_PARKED')
    expect(wordOf(delayed().applyCommand({ kind: 'reschedule', runAt: 0 }))).toBe('E_JOB_PARKED')
    expect(wordOf(queued().applyCommand({ kind: 'exhaust' }))).toBe('E_JOB_PARKED')
  })

  it('keeps the block when its due time is moved', () => {
    const script = played(document, 'delay', 'park')
    const runAt = script.clock.now() + 5
    expect(wordOf(script.applyCommand({ kind: 'reschedule', runAt }))).toBe('reschedule')
    expect(script.job).toMatchObject({ runAt, blockedReason: 'parked' })
  })

  it('ends without the block when it is cancelled', () => {
    for (const lifecycle of WITHOUT_PARKED_STATE) {
      const script = played(lifecycle, 'create', 'park')
      expect(factOf(script.applyCommand({ kind: 'cancel' })).blockedReason).toBeNull()
      expect(script.job).toMatchObject({ outcome: 'failed', blockedReason: null })
    }
  })
})

describe('a redriven job', () => {
  it('runs again with fresh budgets, while its attempts go on', () => {
    const cases: [JobScript, string][] = [
      [played(standard, 'create', 'claim', 'fail'), 'failed queued'],
      [played(hardened, 'create', 'claim', 'fail'), 'quarantined pending'],
      [played(task, 'create', 'claim', 'fail'), 'error pending'],
    ]
    for (const [script, states] of cases) {
      script.clock.advance(9)
      const fact = factOf(script.operate({ kind: 'redrive' }))
      expect(statesOf(fact).join(' ')).toBe(states)
      expect(fact).toMatchObject({ trigger: 'redrive', resets: true, operator: 'ann' })
      expect(script.job).toMatchObject({
        attempt: 1,
        outcome: null,
        endedAt: null,
        reason: null,
        runAt: script.clock.now(),
      })
      expect(wordOf(script.operate({ kind: 'redrive' }))).toBe('same')
      expect(wordOf(script.claim())).toBe('claim')
      expect(script.job.attempt).toBe(2)
      expect(wordOf(script.operate({ kind: 'redrive' }))).toBe('E_TRANSITION_INVALID')
    }
  })

  it('has its failures and crashes forgiven, but not its releases', () => {
    const script = played(standard, 'create', 'claim', 'retry')
    awaken(script)
    script.claim()
    crash(script)
    awaken(script)
    script.claim({ start: false })
    crash(script)
    expect(script.job).toMatchObject({ failures: 1, crashes: 1, releases: 1, attempt: 3 })
    script.operate({ kind: 'park' })
    script.operate({ kind: 'redrive' })
    expect(script.job).toMatchObject({ failures: 0, crashes: 0, releases: 1, attempt: 3 })
  })

  it('only loses its block where the lifecycle has no parked state', () => {
    for (const lifecycle of WITHOUT_PARKED_STATE) {
      const script = played(lifecycle, 'create', 'park')
      script.clock.advance(9)
      const fact = factOf(script.operate({ kind: 'redrive' }))
      expect(statesOf(fact)).toEqual([lifecycle.ready, lifecycle.ready])
      expect(fact).toMatchObject({ blockedReason: null })
      // Parking spent no budget, so there is none to give back.
      expect(fact).not.toHaveProperty('resets')
      expect(script.job).toMatchObject({ blockedReason: null, runAt: script.clock.now() })
      expect(script.job.reason).toBeNull()
      expect(wordOf(script.claim())).toBe('claim')
    }
  })

  it('keeps the due time that it was waiting for, where it was not ready', () => {
    const script = played(document, 'create', 'claim', 'retry', 'park')
    const { runAt } = script.job
    expect(factOf(script.operate({ kind: 'redrive' }))).not.toHaveProperty('runAt')
    expect(script.job).toMatchObject({ state: 'RETRYING', runAt, blockedReason: null })
    const held = played(document, 'hold', 'park')
    held.operate({ kind: 'redrive' })
    expect(held.job).toMatchObject({ state: 'CREATED', runAt: null, blockedReason: null })
  })

  it('is unsupported where the document knows no way back', () => {
    for (const lifecycle of [leased, document, tiny]) {
      const script = played(lifecycle, 'create', 'claim', 'fail')
      expect(wordOf(script.operate({ kind: 'redrive' }))).toBe('E_UNSUPPORTED')
    }
  })
})

describe('a redrive of a committed job', () => {
  it('is a fact for its outbox and changes nothing of the job', () => {
    for (const lifecycle of EVERY_LIFECYCLE) {
      const script = played(lifecycle, 'create', 'claim', 'effects')
      const before = script.job
      const fact = factOf(script.operate({ kind: 'redrive' }))
      expect(statesOf(fact)).toEqual([lifecycle.held, lifecycle.held])
      expect(fact).not.toHaveProperty('resets')
      const { seq } = before
      expect(script.job).toEqual({ ...before, seq: seq + 1, updatedAt: script.clock.now() })
      expect(wordOf(script.applyCommand({ kind: 'done', attempt: 1 }))).toBe('done')
    }
  })

  it('that is done is refused', () => {
    for (const lifecycle of EVERY_LIFECYCLE) {
      const script = played(lifecycle, 'create', 'claim', 'commit')
      expect(wordOf(script.operate({ kind: 'redrive' }))).toBe('E_COMMITTED')
    }
  })
})

describe('a discarded job', () => {
  it('of lifecycle standard is given up for good', () => {
    const script = played(standard, 'create', 'park')
    expect(statesOf(factOf(script.operate({ kind: 'discard' })))).toEqual(['quarantined', 'failed'])
    expect(script.job).toMatchObject({ outcome: 'failed', reason: 'discarded' })
    expect(wordOf(script.operate({ kind: 'discard' }))).toBe('same')
    expect(wordOf(played(standard, 'create').operate({ kind: 'discard' }))).toBe(
      'E_TRANSITION_INVALID',
    )
  })

  it('does not exist elsewhere', () => {
    for (const lifecycle of [hardened, leased, document, task, tiny]) {
      const answer = played(lifecycle, 'create').operate({ kind: 'discard' })
      expect(wordOf(answer)).toBe('E_UNSUPPORTED')
    }
  })
})

describe('a forced move', () => {
  it('reaches every state but the held and the succeeded one', () => {
    for (const lifecycle of EVERY_LIFECYCLE) {
      for (const [to, role] of lifecycle.roles) {
        if (to === lifecycle.ready) continue
        const script = played(lifecycle, 'create')
        const answer = script.operate({ kind: 'force', to })
        if (role === 'held' || role === 'succeeded') {
          expect(errorOf(answer)).toMatchObject({ code: 'E_TRANSITION_INVALID', to })
          continue
        }
        const fact = factOf(answer)
        expect(statesOf(fact)).toEqual([lifecycle.ready, to])
        expect(fact).toMatchObject({ trigger: 'force', reason: 'forced', note: 'looked into it' })
        const ended = role === 'failed' || role === 'cancelled'
        expect(script.job).toMatchObject({ state: to, outcome: ended ? role : null })
        expect(script.job.runAt).toBe(role === 'idle' ? null : script.clock.now())
      }
    }
  })

  it('aborts the attempt of a running job, for good where the job ends', () => {
    for (const [to, final] of [
      ['queued', undefined],
      ['failed', true],
    ] as const) {
      const script = played(standard, 'create', 'claim')
      const { execution } = factOf(script.operate({ kind: 'force', to }))
      expect(execution).toMatchObject({ attempt: 1, statuses: ['ABORTED'], abort: 'forced' })
      expect(execution?.final).toBe(final)
    }
  })

  it('to the present state is the same', () => {
    expect(wordOf(played(standard, 'create').operate({ kind: 'force', to: 'queued' }))).toBe('same')
    const held = played(standard, 'create', 'claim')
    expect(wordOf(held.operate({ kind: 'force', to: 'running' }))).toBe('same')
  })

  it('names the states that it could have reached', () => {
    const answer = played(leased, 'create').operate({ kind: 'force', to: 'GONE' })
    expect(errorOf(answer)).toMatchObject({ from: 'PENDING', to: 'GONE', allowed: ['FAILED'] })
  })

  it('undoes no end and no commit', () => {
    const force = { kind: 'force', to: 'queued' } as const
    expect(wordOf(played(standard, 'create', 'cancel').operate(force))).toBe('E_JOB_ENDED')
    expect(wordOf(played(standard, 'create', 'claim', 'fail').operate(force))).toBe('E_JOB_ENDED')
    const committed = played(standard, 'create', 'claim', 'effects')
    expect(wordOf(committed.operate(force))).toBe('E_COMMITTED')
    const succeeded = played(standard, 'create', 'claim', 'commit')
    expect(wordOf(succeeded.operate(force))).toBe('E_COMMITTED')
  })

  it('takes a block away', () => {
    const script = played(document, 'create', 'park')
    script.operate({ kind: 'force', to: 'RETRYING' })
    expect(script.job).toMatchObject({ state: 'RETRYING', blockedReason: null })
  })
})

describe('a repair', () => {
  it('without a target only records that the row was mended, also after the commit', () => {
    for (const script of [played(task, 'create'), played(task, 'create', 'claim', 'effects')]) {
      const { state, reason } = script.job
      const fact = factOf(script.operate({ kind: 'repair' }))
      expect(statesOf(fact)).toEqual([state, state])
      expect(fact).toMatchObject({ trigger: 'repair', actor: 'doctor', operator: 'ann' })
      expect(script.job.reason).toBe(reason)
    }
  })

  it('with a target follows the rules of a forced move', () => {
    const script = played(task, 'create', 'claim')
    const fact = factOf(script.operate({ kind: 'repair', to: 'pending' }))
    expect(fact).toMatchObject({ trigger: 'repair', reason: 'repaired', to: 'pending' })
    expect(fact.execution).toMatchObject({ abort: 'forced' })
    expect(wordOf(script.operate({ kind: 'repair', to: 'pending' }))).toBe('same')
    for (const to of ['running', 'done']) {
      expect(wordOf(script.operate({ kind: 'repair', to }))).toBe('E_TRANSITION_INVALID')
    }
    const committed = played(task, 'create', 'claim', 'effects')
    expect(wordOf(committed.operate({ kind: 'repair', to: 'pending' }))).toBe('E_COMMITTED')
    const ended = played(task, 'create', 'cancel')
    expect(wordOf(ended.operate({ kind: 'repair', to: 'pending' }))).toBe('E_JOB_ENDED')
  })
})

describe('a job whose recovery needs an operator', () => {
  const stalled = (lifecycle: Lifecycle, start = true) => {
    const script = new JobScript(lifecycle)
    script.create({ policy: policyWith(lifecycle, { recovery: 'operator' }) })
    script.claim({ start })
    script.clock.advance(30_000)
    return script
  }

  it('is flagged once when its lease has run out, and stays where it is', () => {
    for (const lifecycle of EVERY_LIFECYCLE) {
      const script = stalled(lifecycle)
      const { fence } = script
      const fact = factOf(script.applyCommand({ kind: 'expire', fence }, { actor: 'engine' }))
      expect(fact).toMatchObject({ trigger: 'stall', stalled: true, reason: 'stalled' })
      expect(statesOf(fact)).toEqual([lifecycle.held, lifecycle.held])
      expect(script.job).toMatchObject({ stalled: true, crashes: 0, failures: 0, attempt: 1 })
      expect(wordOf(script.applyCommand({ kind: 'expire', fence }))).toBe('same')
      expect(staleness(script.applyCommand({ kind: 'commit', fence }))).toBe('expired')
    }
  })

  it('crashes once a named operator approves, flagged before or not', () => {
    for (const lifecycle of EVERY_LIFECYCLE) {
      for (const flagged of [true, false]) {
        const script = stalled(lifecycle)
        const { fence } = script
        if (flagged) script.applyCommand({ kind: 'expire', fence })
        const approved = { kind: 'expire', fence, approved: true } as const
        expect(wordOf(script.applyCommand(approved))).toBe('E_COMMAND_INVALID')
        const engine = { actor: 'engine', operator: 'ann', note: 'yes' } as const
        expect(errorOf(script.applyCommand(approved, engine)).details.field).toBe('actor')
        const fact = factOf(script.operate(approved))
        expect(fact).toMatchObject({ trigger: 'expire', operator: 'ann', reason: 'lease_expired' })
        expect(script.job).toMatchObject({ stalled: false, execution: null })
        expect(script.job.crashes + script.job.failures).toBe(1)
      }
    }
  })

  it('does not wait if the handler had not started', () => {
    const script = stalled(standard, false)
    const { fence } = script
    expect(wordOf(script.applyCommand({ kind: 'expire', fence }))).toBe('release')
    expect(script.job).toMatchObject({ state: 'queued', stalled: false, releases: 1 })
  })

  it('loses the flag with its state, however it leaves', () => {
    for (const command of [{ kind: 'cancel' }, { kind: 'park' }] as const) {
      const script = stalled(standard)
      script.applyCommand({ kind: 'expire', fence: script.fence })
      expect(script.job.stalled).toBe(true)
      script.operate(command)
      expect(script.job.stalled).toBe(false)
    }
  })

  it('may also be approved while the lease runs, which is too early', () => {
    const script = new JobScript(standard)
    script.create({ policy: policyWith(standard, { recovery: 'operator' }) })
    script.claim()
    const { fence } = script
    expect(wordOf(script.operate({ kind: 'expire', fence, approved: true }))).toBe('E_LEASE_LIVE')
  })
})
