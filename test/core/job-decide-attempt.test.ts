// What an attempt may do to its job: claims, starts, steps, commits, and its ends before a commit.
import type { Lifecycle } from 'pawl'
import { document, hardened, leased, standard, task } from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import {
  awaken,
  crash,
  EVERY_LIFECYCLE,
  errorOf,
  FINAL,
  factOf,
  HOUR,
  played,
  policyWith,
  staleness,
  statesOf,
  TRANSIENT,
  tiny,
  UNREADABLE,
  wordOf,
} from './job-play.ts'

const CLAIM = '00000000-0000-7000-8000-0000000000aa'
const OTHER = '00000000-0000-7000-8000-0000000000bb'

const claimBy = (script: JobScript, claim: string, leaseMs = 1000) =>
  script.applyCommand({
    kind: 'claim',
    claim,
    worker: 'w',
    leaseUntil: script.clock.now() + leaseMs,
    start: true,
  })

describe('a claim', () => {
  it('takes a due job, opens its next attempt and starts it where a slot is free', () => {
    for (const lifecycle of EVERY_LIFECYCLE) {
      const script = played(lifecycle, 'create')
      expect(statesOf(factOf(script.claim()))).toEqual([lifecycle.ready, lifecycle.held])
      expect(script.job).toMatchObject({ attempt: 1, execution: { status: 'IN_PROGRESS' } })
      const prefetched = played(lifecycle, 'create', 'lease')
      expect(prefetched.job).toMatchObject({ attempt: 1, execution: { status: 'LEASED' } })
    }
  })

  it('again by the same claim is the same, by another it is stale', () => {
    const script = played(standard, 'create')
    expect(wordOf(claimBy(script, CLAIM))).toBe('claim')
    expect(wordOf(claimBy(script, CLAIM))).toBe('same')
    expect(staleness(claimBy(script, OTHER))).toBe('claim')
    script.clock.advance(1000)
    expect(staleness(claimBy(script, OTHER))).toBe('claim')
    expect(script.job.attempt).toBe(1)
  })

  it('finds no job that is not ready', () => {
    expect(wordOf(played(standard, 'hold').claim())).toBe('E_TRANSITION_INVALID')
    expect(wordOf(played(standard, 'delay').claim())).toBe('E_TRANSITION_INVALID')
    expect(wordOf(played(standard, 'create', 'cancel').claim())).toBe('E_TRANSITION_INVALID')
    expect(wordOf(played(standard, 'create', 'park').claim())).toBe('E_TRANSITION_INVALID')
    expect(wordOf(played(standard, 'create', 'claim', 'effects').claim())).toBe('E_COMMITTED')
    expect(wordOf(played(standard, 'create', 'claim', 'commit').claim())).toBe('E_COMMITTED')
  })

  it('is not before the due time', () => {
    const script = played(leased, 'delay')
    const early = script.claim()
    expect(wordOf(early)).toBe('E_NOT_DUE')
    expect(errorOf(early).details.runAt).toBe(script.clock.now() + HOUR)
    script.clock.advance(HOUR)
    expect(wordOf(script.claim())).toBe('claim')
  })

  it('skips a parked job, and says why it is parked', () => {
    const answer = played(leased, 'create', 'park').claim()
    expect(wordOf(answer)).toBe('E_JOB_PARKED')
    expect(errorOf(answer).details.reason).toBe('parked')
  })

  it('needs a lease that ends in the future', () => {
    const script = played(standard, 'create')
    for (const leaseMs of [0, -1]) {
      const answer = claimBy(script, CLAIM, leaseMs)
      expect(wordOf(answer)).toBe('E_COMMAND_INVALID')
      expect(errorOf(answer).details.field).toBe('leaseUntil')
    }
    expect(wordOf(claimBy(script, CLAIM, 1))).toBe('claim')
  })
})

describe('a start', () => {
  it('is a fact without an edge, once', () => {
    const script = played(standard, 'create', 'lease')
    script.clock.advance(7)
    const { fence } = script
    const fact = factOf(script.applyCommand({ kind: 'start', fence }))
    expect(fact).toMatchObject({ trigger: 'start', from: 'running', to: 'running' })
    expect(fact.execution).toEqual({ attempt: 1, statuses: ['IN_PROGRESS'] })
    expect(script.job.startedAt).toBe(script.clock.now())
    expect(wordOf(script.applyCommand({ kind: 'start', fence }))).toBe('same')
  })

  it('comes before any step and any commit', () => {
    const script = played(standard, 'create', 'lease')
    const { fence } = script
    for (const [command, to] of [
      [{ kind: 'step', fence, name: 'fetch', n: 1 }, 'IN_PROGRESS'],
      [{ kind: 'commit', fence }, 'COMMITTED'],
    ] as const) {
      expect(errorOf(script.applyCommand(command))).toMatchObject({
        code: 'E_TRANSITION_INVALID',
        from: 'LEASED',
        to,
        allowed: ['IN_PROGRESS', 'ABORTED'],
      })
    }
  })
})

describe('a step', () => {
  it('is remembered by its name and number, without an edge', () => {
    const script = played(task, 'create', 'claim')
    const { fence } = script
    const fact = factOf(script.applyCommand({ kind: 'step', fence, name: 'fetch', n: 2 }))
    expect(fact).toMatchObject({
      trigger: 'step',
      from: 'running',
      to: 'running',
      step: { name: 'fetch', n: 2 },
    })
    expect(fact).not.toHaveProperty('execution')
  })
})

describe('a commit', () => {
  it('without effects succeeds in the same fact and forgets the last error', () => {
    for (const lifecycle of EVERY_LIFECYCLE) {
      const script = played(lifecycle, 'create', 'claim')
      crash(script)
      expect(script.job.error).not.toBeNull()
      awaken(script)
      script.claim()
      const fact = factOf(script.applyCommand({ kind: 'commit', fence: script.fence }))
      expect(statesOf(fact)).toEqual([lifecycle.held, lifecycle.succeeded])
      expect(fact).toMatchObject({ trigger: 'commit', outcome: 'succeeded', effects: 0 })
      expect(fact.execution).toMatchObject({ attempt: 2, statuses: ['COMMITTED', 'DONE'] })
      expect(script.job).toMatchObject({ outcome: 'succeeded', error: null, reason: null })
      expect(script.job.endedAt).toBe(script.clock.now())
    }
  })

  it('says nothing of a parking that there was none of', () => {
    const script = played(standard, 'create', 'claim')
    const fact = factOf(script.applyCommand({ kind: 'commit', fence: script.fence }))
    expect(Object.keys(fact)).not.toContain('blockedReason')
  })

  it('with effects leaves the job held until they are delivered', () => {
    for (const lifecycle of EVERY_LIFECYCLE) {
      const script = played(lifecycle, 'create', 'claim')
      const fact = factOf(script.applyCommand({ kind: 'commit', fence: script.fence, effects: 3 }))
      expect(statesOf(fact)).toEqual([lifecycle.held, lifecycle.held])
      expect(fact).toMatchObject({ trigger: 'commit', effects: 3 })
      expect(fact).not.toHaveProperty('outcome')
      expect(script.job).toMatchObject({ outcome: null, execution: { status: 'COMMITTED' } })
      const done = factOf(script.applyCommand({ kind: 'done', attempt: 1 }))
      expect(statesOf(done)).toEqual([lifecycle.held, lifecycle.succeeded])
      expect(done).toMatchObject({ trigger: 'done', outcome: 'succeeded' })
      expect(done.execution).toEqual({ attempt: 1, statuses: ['DONE'] })
    }
  })
})

/** Where each class of failure leads; the states that the job passes, and the reason it carries. */
const FAILED: Readonly<Record<string, Readonly<Record<'retry' | 'final' | 'bad', string>>>> = {
  standard: { retry: 'retrying', final: 'failed', bad: 'quarantined' },
  hardened: { retry: 'failed', final: 'failed quarantined', bad: 'failed quarantined' },
  leased: { retry: 'PENDING', final: 'FAILED', bad: 'FAILED' },
  document: { retry: 'RETRYING', final: 'FAILED', bad: 'FAILED' },
  task: { retry: 'error', final: 'error', bad: 'error' },
  tiny: { retry: 'bad', final: 'bad', bad: 'bad' },
}

describe('a failure', () => {
  it('leads where its class says, in every lifecycle', () => {
    for (const lifecycle of EVERY_LIFECYCLE) {
      for (const [path, failure, abort, type] of [
        ['retry', TRANSIENT, 'error', 'RETRYABLE'],
        ['final', FINAL, 'error', 'TERMINAL'],
        ['bad', UNREADABLE, 'invalid_input', 'TERMINAL'],
      ] as const) {
        const script = played(lifecycle, 'create', 'claim')
        const { fence } = script
        const fact = factOf(script.applyCommand({ kind: 'fail', fence, failure }))
        const [, ...states] = statesOf(fact)
        expect(states.join(' '), lifecycle.name).toBe(FAILED[lifecycle.name]?.[path])
        expect(fact).toMatchObject({ reason: failure.kind, execution: { abort } })
        const { message, kind } = failure
        expect(script.job.error).toEqual({ message, kind, type })
      }
    }
  })

  it('by time-out aborts the attempt with that reason', () => {
    const script = played(standard, 'create', 'claim')
    const failure = { ...TRANSIENT, kind: 'timeout' } as const
    const fact = factOf(script.applyCommand({ kind: 'fail', fence: script.fence, failure }))
    expect(fact).toMatchObject({ trigger: 'retry', execution: { abort: 'timeout' } })
  })

  it('of an attempt that has not started is a failure all the same', () => {
    const script = played(standard, 'create', 'lease', 'retry')
    expect(script.job).toMatchObject({ state: 'retrying', failures: 1, releases: 0 })
  })

  it('is granted as many retries as the budget has, and the next one ends or parks the job', () => {
    const ends = { standard: 'quarantined', hardened: 'quarantined', leased: 'FAILED' }
    for (const lifecycle of [standard, hardened, leased, document]) {
      const script = played(lifecycle, 'create', 'claim')
      const fail = () =>
        factOf(script.applyCommand({ kind: 'fail', fence: script.fence, failure: TRANSIENT }))
      for (const failures of [1, 2, 3]) {
        expect(fail()).toMatchObject({ trigger: 'retry', spends: 'failure' })
        expect(script.job.failures).toBe(failures)
        awaken(script)
        script.claim()
      }
      expect(fail()).toMatchObject({ trigger: 'give-up', reason: 'retries_exhausted' })
      expect(script.job).toMatchObject({
        state: ends[lifecycle.name as keyof typeof ends] ?? 'FAILED',
        failures: 3,
        attempt: 4,
        error: { type: 'RETRYABLE' },
      })
    }
  })
})

describe('the delay of a retry', () => {
  const retryWith = (script: JobScript, retryAfterMs?: number) => {
    const failure = { ...TRANSIENT, ...(retryAfterMs !== undefined && { retryAfterMs }) }
    return factOf(script.applyCommand({ kind: 'fail', fence: script.fence, failure }))
  }
  const running = (lifecycle: Lifecycle, random: number) => {
    const script = new JobScript(lifecycle, { random: { next: () => random } })
    script.create()
    script.claim()
    return script
  }

  it('is the policy’s, spread by chance', () => {
    for (const [random, delay] of [
      [0, 1000],
      [0.5, 1500],
      [0.9999, 2000],
    ] as const) {
      const script = running(standard, random)
      expect(retryWith(script).runAt).toBe(script.clock.now() + delay)
    }
  })

  it('is what the handler asked for, and the fact says so', () => {
    for (const delay of [0, 1, HOUR]) {
      const script = running(standard, 0.5)
      expect(retryWith(script, delay)).toMatchObject({
        runAt: script.clock.now() + delay,
        delayAsked: true,
        spends: 'failure',
      })
    }
  })

  it('is one second in lifecycle document, whatever was asked for and whatever chance says', () => {
    for (const [random, asked] of [
      [0, undefined],
      [0.99, undefined],
      [0.5, HOUR],
    ] as const) {
      const script = running(document, random)
      const fact = retryWith(script, asked)
      expect(fact.runAt).toBe(script.clock.now() + 1000)
      expect(fact).not.toHaveProperty('delayAsked')
    }
  })
})

describe('a suspended job', () => {
  it('sleeps until its time, at no cost, in lifecycle standard', () => {
    const script = played(standard, 'create', 'claim')
    const { fence } = script
    const runAt = script.clock.now() + HOUR
    const fact = factOf(script.applyCommand({ kind: 'suspend', fence, runAt }))
    expect(statesOf(fact)).toEqual(['running', 'scheduled'])
    expect(fact).toMatchObject({ reason: 'suspended', execution: { abort: 'suspended' } })
    expect(script.job).toMatchObject({ runAt, failures: 0, crashes: 0, releases: 0 })
    awaken(script)
    expect(wordOf(script.claim())).toBe('claim')
    expect(script.job).toMatchObject({ attempt: 2, reason: null })
  })

  it('does not exist in the other lifecycles', () => {
    for (const lifecycle of [hardened, leased, document, task, tiny]) {
      const script = played(lifecycle, 'create', 'claim')
      const { fence } = script
      const answer = script.applyCommand({ kind: 'suspend', fence, runAt: script.clock.now() })
      expect(wordOf(answer)).toBe('E_UNSUPPORTED')
    }
  })
})

/** The states after a release, and after a crash; the wait and the budget of the crash. */
const LOST: readonly [Lifecycle, back: string, crash: string, ms: number, spends: string][] = [
  [standard, 'running queued', 'running retrying', 1000, 'crash'],
  [hardened, 'running failed pending', 'running failed pending', 60_000, 'crash'],
  [leased, 'RUNNING PENDING', 'RUNNING PENDING', 1000, 'crash'],
  [document, 'RUNNING RETRYING QUEUED', 'RUNNING RETRYING', 1000, 'failure'],
  [task, 'running pending', 'running pending', 0, 'crash'],
  [tiny, 'busy open', 'busy open', 200, 'crash'],
]

const steady = { random: { next: () => 0 } }

describe('a release', () => {
  it('by the holder costs nothing and waits for nothing, in every lifecycle', () => {
    for (const [lifecycle, back] of LOST) {
      const script = played(lifecycle, 'create', 'claim')
      const fact = factOf(script.applyCommand({ kind: 'release', fence: script.fence }))
      expect(statesOf(fact).join(' ')).toBe(back)
      expect(fact).toMatchObject({ trigger: 'release', reason: 'released', spends: 'release' })
      expect(fact.execution).toMatchObject({ abort: 'released', statuses: ['ABORTED'] })
      const runAt = script.clock.now()
      expect(script.job).toMatchObject({ runAt, releases: 1, failures: 0, crashes: 0 })
      expect(wordOf(script.claim())).toBe('claim')
    }
  })

  it('by a lease that ran out before the handler started is the same', () => {
    for (const [lifecycle, back] of LOST) {
      const script = played(lifecycle, 'create', 'lease')
      const fact = factOf(crash(script))
      expect(statesOf(fact).join(' ')).toBe(back)
      expect(fact).toMatchObject({ trigger: 'release', reason: 'lease_expired' })
      expect(fact.execution).toMatchObject({ abort: 'lease_expired' })
      expect(script.job).toMatchObject({ runAt: script.clock.now(), releases: 1, crashes: 0 })
      expect(script.job.failures).toBe(0)
    }
  })

  it('beyond the bound counts as a crash, in every lifecycle', () => {
    for (const [lifecycle, , crashed, delay, spends] of LOST) {
      const script = new JobScript(lifecycle, steady)
      script.create({ policy: policyWith(lifecycle, { releasesMax: 1 }) })
      script.claim()
      script.applyCommand({ kind: 'release', fence: script.fence })
      script.claim()
      const fact = factOf(script.applyCommand({ kind: 'release', fence: script.fence }))
      expect(statesOf(fact).join(' ')).toBe(crashed)
      expect(fact).toMatchObject({ trigger: 'expire', reason: 'released', spends })
      expect(fact.execution).toMatchObject({ abort: 'released' })
      // The error of the job says what happened: no lease expired here.
      expect(fact.error).toMatchObject({ kind: 'released', type: 'RETRYABLE' })
      expect(fact.error?.message).not.toMatch(/expired/)
      expect(script.job).toMatchObject({ runAt: script.clock.now() + delay, releases: 1 })
    }
  })

  it('is the hundred-and-first that counts as a crash where nothing else is said', () => {
    const script = played(task, 'create')
    for (let n = 1; n <= 101; n++) {
      script.claim({ start: false })
      crash(script)
      expect([script.job.releases, script.job.crashes]).toEqual(n <= 100 ? [n, 0] : [100, 1])
    }
  })
})

describe('a crash', () => {
  it('is a lease that ran out after the start: it waits and spends, in every lifecycle', () => {
    for (const [lifecycle, , crashed, delay, spends] of LOST) {
      const script = new JobScript(lifecycle, steady)
      script.create()
      script.claim()
      const fact = factOf(crash(script))
      expect(statesOf(fact).join(' ')).toBe(crashed)
      expect(fact).toMatchObject({ trigger: 'expire', reason: 'lease_expired', spends })
      expect(fact.error).toEqual({
        message: 'The lease expired',
        kind: 'lease_expired',
        type: 'RETRYABLE',
      })
      const counts = spends === 'crash' ? { crashes: 1, failures: 0 } : { crashes: 0, failures: 1 }
      expect(script.job).toMatchObject({ runAt: script.clock.now() + delay, ...counts })
    }
  })

  it('that finds its budget spent ends or parks the job', () => {
    const ends: [Lifecycle, granted: number, states: string, reason: string][] = [
      [standard, 3, 'running quarantined', 'crashes_exhausted'],
      [hardened, 3, 'running failed quarantined', 'crashes_exhausted'],
      [leased, 3, 'RUNNING FAILED', 'crashes_exhausted'],
      [document, 3, 'RUNNING FAILED', 'retries_exhausted'],
      [task, 2, 'running error', 'crashes_exhausted'],
      [tiny, 2, 'busy bad', 'crashes_exhausted'],
    ]
    for (const [lifecycle, granted, states, reason] of ends) {
      const script = played(lifecycle, 'create')
      for (let n = 1; n <= granted; n++) {
        script.claim()
        expect(wordOf(crash(script))).toBe('expire')
        awaken(script)
      }
      script.claim()
      const fact = factOf(crash(script))
      expect(statesOf(fact).join(' ')).toBe(states)
      expect(fact).toMatchObject({ trigger: 'give-up', reason })
      expect(fact).not.toHaveProperty('spends')
      expect(script.job.crashes + script.job.failures).toBe(granted)
    }
  })

  it('waits longer each time where the policy grows its delays', () => {
    const script = new JobScript(tiny, steady)
    script.create()
    for (const delay of [200, 400]) {
      script.claim()
      crash(script)
      expect((script.job.runAt ?? 0) - script.clock.now()).toBe(delay)
      awaken(script)
    }
  })
})
