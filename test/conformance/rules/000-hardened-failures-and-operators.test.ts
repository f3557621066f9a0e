/** R0 (hardening): failures, operators, facts, and what holds for every history. */
import fc from 'fast-check'
import {
  type Command,
  checkP2,
  checkP3,
  checkP5,
  checkP6,
  checkP9,
  decide,
  executionsOf,
  FACT_CODES,
  type Fact,
  fold,
  hardened,
  type Violation,
} from 'pawl/rules'
import type { JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import {
  answerOf,
  ask,
  askInVain,
  commit,
  crash,
  factOf,
  failRetryably,
  failTerminally,
  inVain,
  letDue,
  stepsOf,
} from '../../support/job-answers.ts'
import { histories } from '../../support/random-history.ts'
import {
  committed,
  everyCommand,
  FIRST_FENCE,
  failed,
  IN_STATE,
  pending,
  quarantined,
  running,
  STATES,
  succeeded,
} from '../000-hardened-helpers.ts'

const OPEN = ['LEASED', 'IN_PROGRESS', 'COMMITTED']
const RUNS = { numRuns: 200 }
const lives = histories({ lifecycles: [hardened] })

describe('failures of R0', () => {
  it('a retryable failure waits in failed and returns to pending when it is due', () => {
    const script = running()
    const failure = factOf(failRetryably(script))
    expect(failure).toMatchObject({ from: 'running', to: 'failed', spends: 'failure' })
    const runAt = script.job.runAt ?? 0
    expect(runAt).toBeGreaterThan(script.clock.now())
    expect(script.job).toMatchObject({ state: 'failed', failures: 1, crashes: 0 })

    script.clock.advance(runAt - script.clock.now() - 1)
    expect(askInVain(script, { kind: 'due' })).toBe('E_NOT_DUE')
    script.clock.advance(1)
    expect(inVain(script, () => script.claim())).toBe('E_TRANSITION_INVALID')
    expect(stepsOf(script.applyCommand({ kind: 'due' }))).toEqual(['failed → pending'])
    expect(script.job.failures).toBe(1)
    expect(stepsOf(script.claim())).toEqual(['pending → running'])

    const hasty = failed()
    const now = hasty.clock.now()
    const who = { actor: 'operator', operator: 'ann', note: 'it is fixed' } as const
    const retried = hasty.applyCommand({ kind: 'reschedule', runAt: now }, who)
    expect(stepsOf(retried)).toEqual(['failed → pending'])
    expect(stepsOf(hasty.claim())).toEqual(['pending → running'])
  })

  it(
    'a terminal error or a spent failure budget goes through failed to quarantined in one step',
    showGivingUp,
  )

  it('a quarantined job leaves only by an operator', () => {
    const now = quarantined().clock.now()
    const byOperator = ['redrive', 'force', 'repair']
    for (const command of everyCommand(FIRST_FENCE, now)) {
      const script = quarantined()
      letDue(script)
      if (!byOperator.includes(command.kind)) ask(script, command)
      expect(script.job.state, command.kind).toBe('quarantined')
    }
    const script = quarantined()
    for (const who of [
      {},
      { actor: 'operator' },
      { actor: 'operator', operator: 'ann' },
      { actor: 'operator', note: 'it is fixed' },
      { actor: 'worker', operator: 'ann', note: 'it is fixed' },
    ] as const) {
      expect(inVain(script, () => script.applyCommand({ kind: 'redrive' }, who))).toBe(
        'E_COMMAND_INVALID',
      )
    }
    const fact = factOf(script.operate({ kind: 'redrive' }, 'ann', 'it is fixed'))
    expect(fact).toMatchObject({ from: 'quarantined', to: 'pending', actor: 'operator' })
    expect(fact).toMatchObject({ operator: 'ann', note: 'it is fixed' })
    expect(stepsOf(script.claim())).toEqual(['pending → running'])
  })
})

function showGivingUp(): void {
  const both = ['running → failed', 'failed → quarantined']
  const terminal = running()
  const end = failTerminally(terminal)
  expect(stepsOf(end)).toEqual(both)
  expect(factOf(end)).toMatchObject({ via: ['failed'], reason: 'validation' })
  expect(terminal.job).toMatchObject({ state: 'quarantined', reason: 'validation', failures: 0 })

  const script = running()
  for (const failures of [1, 2, 3]) {
    expect(stepsOf(failRetryably(script))).toEqual(['running → failed'])
    expect(script.job.failures).toBe(failures)
    letDue(script)
    script.applyCommand({ kind: 'due' })
    script.claim()
  }
  const fourth = failRetryably(script)
  expect(stepsOf(fourth)).toEqual(both)
  expect(factOf(fourth).reason).toBe('retries_exhausted')
  expect(script.job).toMatchObject({ failures: 3, reason: 'retries_exhausted', attempt: 4 })
}

describe('operators of R0', () => {
  it('a manual transition records its operator and reason', () => {
    const acts: [() => JobScript, Command][] = [
      [quarantined, { kind: 'redrive' }],
      [pending, { kind: 'force', to: 'quarantined' }],
      [failed, { kind: 'park' }],
      [pending, { kind: 'cancel' }],
    ]
    for (const [make, command] of acts) {
      const who = { actor: 'operator', operator: 'bea', note: 'as agreed' } as const
      expect(factOf(make().applyCommand(command, who))).toMatchObject(who)
      if (command.kind === 'cancel') continue
      for (const missing of ['operator', 'note'] as const) {
        const script = make()
        const { [missing]: _, ...rest } = who
        expect(inVain(script, () => script.applyCommand(command, rest))).toBe('E_COMMAND_INVALID')
        const blank = { ...who, [missing]: ' ' }
        expect(inVain(script, () => script.applyCommand(command, blank))).toBe('E_COMMAND_INVALID')
      }
    }
  })

  it('a forced move never enters running or succeeded and never undoes a commit', () => {
    for (const state of ['pending', 'failed', 'quarantined'] as const) {
      for (const to of ['running', 'succeeded', 'elsewhere']) {
        expect(askInVain(IN_STATE[state](), { kind: 'force', to })).toBe('E_TRANSITION_INVALID')
      }
    }
    expect(askInVain(running(), { kind: 'force', to: 'succeeded' })).toBe('E_TRANSITION_INVALID')

    for (const to of ['pending', 'failed', 'quarantined']) {
      const script = running()
      const fact = factOf(script.operate({ kind: 'force', to }))
      expect(fact).toMatchObject({ from: 'running', to, reason: 'forced' })
      expect(fact.execution).toMatchObject({ statuses: ['ABORTED'], abort: 'forced' })
      expect(script.job.execution).toBeNull()
      expect(askInVain(script, { kind: 'commit', fence: FIRST_FENCE })).toBe('E_STALE_FENCE')
      for (const make of [committed, succeeded]) {
        expect(askInVain(make(), { kind: 'force', to })).toBe('E_COMMITTED')
      }
      expect([...checkP3(hardened, script.facts), ...checkP6(hardened, script.facts)]).toEqual([])
    }
  })

  it('a job that has succeeded never changes', () => {
    for (const command of everyCommand(FIRST_FENCE, succeeded().clock.now())) {
      const script = succeeded()
      if (command.kind !== 'repair') askInVain(script, command)
    }
    for (const to of STATES) {
      expect(askInVain(succeeded(), { kind: 'force', to })).toBe('E_COMMITTED')
      expect(askInVain(succeeded(), { kind: 'repair', to })).toBe('E_COMMITTED')
    }
    // The doctor may note that a row was rebuilt; that is a fact about the row and moves nothing.
    const noted = succeeded()
    const before = noted.job
    noted.operate({ kind: 'repair' })
    const { seq, updatedAt, reason } = noted.job
    expect(noted.job).toEqual({ ...before, seq, updatedAt, reason })

    const { facts } = succeeded()
    expect(checkP6(hardened, facts)).toEqual([])
    const left = [...facts, madeUp(facts, { trigger: 'redrive', to: 'pending' })]
    expect(checkP6(hardened, left)).toMatchObject([{ promise: 'P6', seq: 4 }])
    // A change of an attribute is a change too.
    const changed = [...facts, madeUp(facts, { trigger: 'prioritise', priority: 9 })]
    expect(checkP6(hardened, changed)).toMatchObject([{ promise: 'P6', seq: 4 }])
  })
})

/** A fact that nobody decided, after those given. */
function madeUp(facts: readonly Fact[], fields: Partial<Fact>): Fact {
  const last = facts.at(-1)
  if (last === undefined) throw new Error('there is no fact to follow')
  const { version, jobId, at, to } = last
  const base = { version, jobId, at, seq: last.seq + 1, from: to, to, actor: 'client' } as const
  return { ...base, trigger: 'repair', ...fields }
}

/** The facts with one of them changed. */
function tampered(facts: readonly Fact[], seq: number, fields: Partial<Fact>): Fact[] {
  return facts.map((fact) => (fact.seq === seq ? { ...fact, ...fields } : fact))
}

const placesOf = (violations: readonly Violation[]) =>
  violations.map(({ promise, seq }) => `${promise} at ${seq}`)

/** Create, claim, crash, claim, commit with an effect, done: facts 1 to 6. */
function longLife(): JobScript {
  const script = running()
  crash(script)
  letDue(script)
  script.claim({ worker: 'worker-2' })
  commit(script, 1)
  script.applyCommand({ kind: 'done', attempt: 2 }, { actor: 'engine' })
  return script
}

it(
  'every change of state is one fact with job, time, trigger, from, to, actor, reason and metadata',
  showWholeFacts,
)

function showWholeFacts(): void {
  const script = pending()
  const metadata = { host: 'host-1', region: 'north' }
  expect(factOf(script.applyCommand({ kind: 'cancel' }, { metadata }))).toMatchObject({
    version: 1,
    jobId: script.job.id,
    seq: 2,
    at: script.clock.now(),
    trigger: 'cancel',
    from: 'pending',
    to: 'quarantined',
    actor: 'client',
    reason: 'cancelled',
    metadata,
  })
  const actors = ['worker', 'client', 'engine', 'doctor', 'operator']
  fc.assert(
    fc.property(lives, ({ script: { facts }, told }) => {
      for (const { answer, before, after, context } of told) {
        if (answer.kind !== 'fact') continue
        const { fact } = answer
        expect(fact).toMatchObject({ version: 1, jobId: after?.id, at: context.now })
        expect(fact).toMatchObject({ from: before?.state ?? null, to: after?.state })
        expect(Object.keys(FACT_CODES)).toContain(fact.trigger)
        expect(actors).toContain(fact.actor)
        expect(fact.reason ?? 'none').toMatch(/^[a-z_]+$/)
        expect(fact.metadata ?? {}).toEqual(context.metadata ?? {})
        expect(JSON.parse(JSON.stringify(fact))).toEqual(fact)
      }
      expect(facts.map(({ seq }) => seq)).toEqual(facts.map((_, i) => i + 1))
      const accepted = told.filter(({ answer }) => answer.kind === 'fact')
      expect(facts).toHaveLength(accepted.length)
    }),
    RUNS,
  )
}

describe('facts of R0', () => {
  it('a job is in exactly one state at every point of its ledger', () => {
    fc.assert(
      fc.property(lives, ({ script: { facts } }) => {
        let state: string | null = null
        for (const [i, fact] of facts.entries()) {
          expect(fact.from).toBe(state)
          state = fold(facts.slice(0, i + 1))?.state ?? null
          expect(state).toBe(fact.to)
          expect(STATES).toContain(state)
        }
        expect(checkP2(hardened, facts)).toEqual([])
      }),
      RUNS,
    )
  })

  it('a running job has exactly one open execution with an owner', () => {
    fc.assert(
      fc.property(lives, ({ script: { facts } }) => {
        for (const [i, fact] of facts.entries()) {
          const executions = executionsOf(facts.slice(0, i + 1))
          const open = executions.filter(({ status }) => OPEN.includes(status))
          expect(open).toHaveLength(fact.to === 'running' ? 1 : 0)
          expect(open.every(({ leaseOwner }) => leaseOwner.startsWith('worker-'))).toBe(true)
          if (fact.trigger !== 'claim') continue
          expect(fact.execution?.leaseUntil).toBeGreaterThan(fact.at)
          expect(fact.execution?.worker).toMatch(/^worker-/)
          expect(fact.execution?.claim).toMatch(/^[0-9a-f-]{36}$/)
        }
      }),
      RUNS,
    )
  })

  it('the job as of any fact is the fold of the facts up to it', () => {
    fc.assert(
      fc.property(lives, ({ script: { facts }, told }) => {
        const copy = structuredClone(facts)
        for (const { answer, after } of told) {
          if (answer.kind !== 'fact') continue
          expect(fold(facts.slice(0, answer.fact.seq))).toEqual(after)
        }
        expect(facts).toEqual(copy)
      }),
      RUNS,
    )
    const { facts } = longLife()
    const states = facts.map((_, i) => fold(facts.slice(0, i + 1))?.state)
    expect(states).toEqual(['pending', 'running', 'pending', 'running', 'running', 'succeeded'])
  })
})

describe('promises of R0', () => {
  it('attempts only increase', () => {
    fc.assert(
      fc.property(lives, ({ told }) => {
        for (const { answer, before, after } of told) {
          const leased = answer.kind === 'fact' && answer.fact.execution?.statuses[0] === 'LEASED'
          expect(after?.attempt ?? 0).toBe((before?.attempt ?? 0) + (leased ? 1 : 0))
        }
      }),
      RUNS,
    )
    const { facts } = longLife()
    expect(checkP5(hardened, facts)).toEqual([])
    for (const attempt of [1, 0, -1, 3]) {
      const execution = { attempt, statuses: ['LEASED'] } as const
      const broken = checkP5(hardened, tampered(facts, 4, { execution }))
      expect(broken, `attempt ${attempt}`).toContainEqual(
        expect.objectContaining({ promise: 'P5', seq: 4 }),
      )
    }
  })

  it('any random sequence of commands keeps the promises and the budgets', () => {
    fc.assert(
      fc.property(lives, ({ script: { facts }, policy, told }) => {
        const { retry, crashesMax, releasesMax } = policy ?? hardened.policy
        for (const { after, answer } of told) {
          if (after === null || answer.kind !== 'fact') continue
          expect(after.failures).toBeLessThanOrEqual(retry.max)
          expect(after.crashes).toBeLessThanOrEqual(crashesMax)
          expect(after.releases).toBeLessThanOrEqual(releasesMax)
          const soFar = facts.slice(0, after.seq)
          const broken = [checkP2, checkP3, checkP5, checkP6].flatMap((p) => p(hardened, soFar))
          expect([...broken, ...checkP9(after, soFar)]).toEqual([])
        }
      }),
      RUNS,
    )
  })

  it('a repeated command changes nothing', () => {
    fc.assert(
      fc.property(lives, ({ told }) => {
        for (const { command, context, after, answer } of told) {
          if (answer.kind !== 'fact' || isRecordOfAct(command, answer.fact)) continue
          const again = decide(hardened, after, command, context)
          expect(answerOf(again), `${command.kind} again`).not.toBe('fact')
        }
      }),
      RUNS,
    )
    const twice: [() => JobScript, Command][] = [
      [running, { kind: 'step', fence: FIRST_FENCE, name: 'fetch', n: 1 }],
      [running, { kind: 'release', fence: FIRST_FENCE }],
      [running, { kind: 'commit', fence: FIRST_FENCE, effects: 1 }],
      [committed, { kind: 'done', attempt: 1 }],
      [pending, { kind: 'prioritise', priority: 3 }],
      [pending, { kind: 'cancel' }],
      [failed, { kind: 'park' }],
      [quarantined, { kind: 'redrive' }],
    ]
    for (const [make, command] of twice) {
      const script = make()
      expect(answerOf(ask(script, command)), command.kind).toBe('fact')
      askInVain(script, command)
    }
  })
})

/**
 * Two facts record that somebody did something, and say so each time it is done: the doctor that
 * rebuilt a row, and the operator who had the effects of a committed job delivered again.
 */
function isRecordOfAct(command: Command, fact: Fact): boolean {
  // Whether a step is known already is told to the decider by whoever keeps the ledger.
  if (command.kind === 'step') return true
  // Each replacement brings an input of its own, which the decider never sees.
  if (command.kind === 'replace') return true
  if (command.kind === 'repair') return command.to === undefined
  return command.kind === 'redrive' && fact.to === 'running'
}

describe('the predicates of the promises', () => {
  it('the promise predicates accept every legal history and report tampered records', () => {
    const { facts, job } = longLife()
    const all = [checkP2, checkP3, checkP5, checkP6]
    expect(all.flatMap((check) => check(hardened, facts))).toEqual([])
    expect(checkP9(job, facts)).toEqual([])

    const p2 = (changed: readonly Fact[]) => placesOf(checkP2(hardened, changed))
    expect(p2(tampered(facts, 2, { to: 'elsewhere' }))).toContain('P2 at 2')
    expect(p2(tampered(facts, 1, { to: 'elsewhere' }))).toContain('P2 at 1')
    expect(p2(tampered(facts, 1, { to: 'succeeded' }))).toContain('P2 at 1')
    expect(p2(tampered(facts, 3, { via: [] }))).toEqual(['P2 at 3'])
    expect(p2(facts.filter(({ seq }) => seq !== 3))).toContain('P2 at 4')
    const forced = { trigger: 'force', from: 'pending', to: 'quarantined' } as const
    const named = { operator: 'ann', note: 'as agreed' } as const
    const start = facts.slice(0, 1)
    expect(p2([...start, madeUp(start, { ...forced, ...named })])).toEqual([])
    expect(p2([...start, madeUp(start, forced)])).toEqual(['P2 at 2'])
    for (const to of ['running', 'succeeded', 'elsewhere']) {
      const end = to === 'succeeded' ? ({ outcome: to } as const) : {}
      const off = madeUp(start, { ...forced, ...named, ...end, to })
      expect(p2([...start, off]), `forced into ${to}`).toEqual(['P2 at 2'])
    }
    const execution = { attempt: 1, statuses: ['IN_PROGRESS', 'COMMITTED', 'DONE'] } as const
    const second = tampered(facts, 3, { execution })
    expect(placesOf(checkP3(hardened, second))).toEqual(['P3 at 5'])
    const fallen = tampered(facts, 4, { execution: { attempt: -1, statuses: ['LEASED'] } })
    expect(placesOf(checkP5(hardened, fallen))).toContain('P5 at 4')
    const after = [...facts, madeUp(facts, { trigger: 'due', to: 'pending' })]
    expect(placesOf(checkP6(hardened, after))).toEqual(['P6 at 7'])

    for (const wrong of [{ state: 'failed' }, { attempt: -1 }, { failures: 2 }, { updatedAt: 0 }]) {
      expect(placesOf(checkP9({ ...job, ...wrong }, facts))).toEqual(['P9 at 6'])
    }
    const twice = tampered(tampered(facts, 2, { to: 'succeeded' }), 4, { to: 'succeeded' })
    expect(p2(twice)).toEqual(expect.arrayContaining(['P2 at 2', 'P2 at 4']))
  })
})
