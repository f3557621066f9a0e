// Priority, exhaustion and cancellation: what may be asked of a job from outside.
import { document, standard } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { EVERY_LIFECYCLE, errorOf, factOf, played, statesOf, wordOf } from './job-play.ts'

type Script = ReturnType<typeof played>

describe('a change of priority', () => {
  it('is a fact without an edge, in every state that has not ended', () => {
    for (const lifecycle of EVERY_LIFECYCLE) {
      for (const script of [played(lifecycle, 'create'), played(lifecycle, 'create', 'claim')]) {
        const { state } = script.job
        const fact = factOf(script.applyCommand({ kind: 'prioritise', priority: 7 }))
        expect(fact).toMatchObject({ trigger: 'prioritise', from: state, to: state, priority: 7 })
        expect(script.job).toMatchObject({ state, priority: 7 })
        expect(wordOf(script.applyCommand({ kind: 'prioritise', priority: 7 }))).toBe('same')
      }
    }
  })

  it('comes too late for a job that has ended', () => {
    const prioritise = { kind: 'prioritise', priority: 7 } as const
    const failed = played(standard, 'create', 'claim', 'fail').applyCommand(prioritise)
    expect(wordOf(failed)).toBe('E_JOB_ENDED')
    expect(errorOf(failed).details).toMatchObject({ state: 'failed', command: 'prioritise' })
    const succeeded = played(standard, 'create', 'claim', 'commit')
    expect(wordOf(succeeded.applyCommand(prioritise))).toBe('E_COMMITTED')
  })
})

describe('exhaustion', () => {
  it('fails a queued job of lifecycle document, with a terminal error', () => {
    const script = played(document, 'create')
    expect(statesOf(factOf(script.applyCommand({ kind: 'exhaust' })))).toEqual(['QUEUED', 'FAILED'])
    expect(script.job).toMatchObject({
      outcome: 'failed',
      reason: 'resource_exhausted',
      failures: 0,
      error: { kind: 'resource_exhausted', type: 'TERMINAL' },
    })
  })

  it('does not apply to a job that is not queued', () => {
    expect(wordOf(played(document, 'hold').applyCommand({ kind: 'exhaust' }))).toBe(
      'E_TRANSITION_INVALID',
    )
    expect(wordOf(played(document, 'create', 'claim').applyCommand({ kind: 'exhaust' }))).toBe(
      'E_TRANSITION_INVALID',
    )
  })

  it('is unsupported in every other lifecycle', () => {
    for (const lifecycle of EVERY_LIFECYCLE.filter(({ name }) => name !== 'document')) {
      expect(wordOf(played(lifecycle, 'create').applyCommand({ kind: 'exhaust' }))).toBe(
        'E_UNSUPPORTED',
      )
    }
  })
})

/** The states that a cancelled job passes, and the attempt that ends with it. */
const CANCELLED: Readonly<Record<string, readonly [Script, string, attempt: number][]>> = {
  'of lifecycle standard ends it in cancelled from every state that has not ended': [
    [played(standard, 'hold'), 'created cancelled', 0],
    [played(standard, 'delay'), 'scheduled cancelled', 0],
    [played(standard, 'create'), 'queued cancelled', 0],
    [played(standard, 'create', 'claim'), 'running cancelled', 1],
    [played(standard, 'create', 'claim', 'retry'), 'retrying cancelled', 1],
    [played(standard, 'create', 'park'), 'quarantined cancelled', 0],
  ],
  'of lifecycle document ends it in FAILED by way of QUEUED': [
    [played(document, 'hold'), 'CREATED QUEUED FAILED', 0],
    [played(document, 'delay'), 'CREATED QUEUED FAILED', 0],
    [played(document, 'create'), 'QUEUED FAILED', 0],
    [played(document, 'create', 'claim'), 'RUNNING FAILED', 1],
    [played(document, 'create', 'claim', 'retry'), 'RETRYING QUEUED FAILED', 1],
    [played(document, 'create', 'claim', 'park'), 'QUEUED FAILED', 1],
  ],
}

describe('a cancellation', () => {
  for (const [title, cases] of Object.entries(CANCELLED)) {
    it(title, () => {
      for (const [script, states, attempt] of cases) {
        const fact = factOf(script.applyCommand({ kind: 'cancel' }))
        expect(statesOf(fact).join(' ')).toBe(states)
        expect(script.job).toMatchObject({ reason: 'cancelled', attempt, blockedReason: null })
        expect(script.job.execution).toBeNull()
        expect(script.job.outcome).toBe(states.endsWith('FAILED') ? 'failed' : 'cancelled')
      }
    })
  }

  it('aborts the attempt of a running job, as cancelled and final', () => {
    for (const move of ['lease', 'claim'] as const) {
      const script = played(standard, 'create', move)
      const { fence } = script
      expect(factOf(script.applyCommand({ kind: 'cancel', fence })).execution).toMatchObject({
        attempt: 1,
        statuses: ['ABORTED'],
        abort: 'cancelled',
        final: true,
      })
    }
  })

  it('opens no attempt where the job does not pass its held state', () => {
    expect(factOf(played(standard, 'create').applyCommand({ kind: 'cancel' }))).not.toHaveProperty(
      'execution',
    )
  })

  it('again is the same, and after another end it is refused', () => {
    const cancelled = played(standard, 'create', 'cancel')
    expect(wordOf(cancelled.applyCommand({ kind: 'cancel' }))).toBe('same')
    const failed = played(standard, 'create', 'claim', 'fail')
    expect(wordOf(failed.applyCommand({ kind: 'cancel' }))).toBe('E_TRANSITION_INVALID')
  })
})

describe('a cancellation through the held state', () => {
  it('opens an attempt that the engine owns, and aborts it in the same fact', () => {
    const cases: Record<string, string> = {
      hardened: 'pending running failed quarantined',
      leased: 'PENDING RUNNING FAILED',
      task: 'pending running error',
      tiny: 'open busy bad',
    }
    for (const lifecycle of EVERY_LIFECYCLE.filter(({ name }) => name in cases)) {
      const script = played(lifecycle, 'create')
      const fact = factOf(script.applyCommand({ kind: 'cancel' }))
      expect(statesOf(fact).join(' ')).toBe(cases[lifecycle.name])
      const final = lifecycle.name === 'hardened' ? {} : { final: true }
      expect(fact.execution).toEqual({
        attempt: 1,
        statuses: ['LEASED', 'ABORTED'],
        worker: 'engine',
        leaseUntil: script.clock.now(),
        abort: 'cancelled',
        ...final,
      })
      expect(script.job).toMatchObject({ attempt: 1, execution: null, reason: 'cancelled' })
      // Nobody worked on it, so no budget is touched and nothing was started.
      expect(script.job).toMatchObject({ failures: 0, crashes: 0, releases: 0, startedAt: null })
    }
  })
})
