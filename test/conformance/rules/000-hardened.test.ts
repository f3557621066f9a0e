/** R0 (hardening): its states, its table, the results of commands, and how a job is put back. */
import fc from 'fast-check'
import { JobNotFound } from 'pawl'
import {
  analyse,
  type Command,
  type Context,
  decide,
  executionsOf,
  FAILURE_KINDS,
  type Failure,
  findLifecycle,
  hardened,
  InvalidTransition,
  LifecycleUnknown,
  move,
  toDot,
  toMarkdown,
  toMermaid,
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
  inVain,
  letDue,
  stepsOf,
} from '../../support/job-answers.ts'
import {
  committed,
  everyCommand,
  FIRST_FENCE,
  FOREIGN_CLAIM,
  failed,
  IN_STATE,
  PAIRS,
  pending,
  quarantined,
  running,
  STATES,
  type State,
  workerCommands,
} from '../000-hardened-helpers.ts'

/** The six edges of R0, typed from its VALID_TRANSITIONS. */
const EDGES = [
  'pending → running',
  'running → succeeded',
  'running → failed',
  'failed → pending',
  'failed → quarantined',
  'quarantined → pending',
]

/** Where each state may go, typed from the same table. */
const ALLOWED: Readonly<Record<State, readonly string[]>> = {
  pending: ['running'],
  running: ['succeeded', 'failed'],
  succeeded: [],
  failed: ['pending', 'quarantined'],
  quarantined: ['pending'],
}

describe('the machine of R0', () => {
  it('the machine has exactly the five documented states', () => {
    expect([...hardened.machine.states.keys()]).toEqual([
      'pending',
      'running',
      'succeeded',
      'failed',
      'quarantined',
    ])
    const { machine, ready, held, parked } = hardened
    expect(machine.initial).toBe('pending')
    expect({ ready, held, parked }).toEqual({
      ready: 'pending',
      held: 'running',
      parked: 'quarantined',
    })
    expect(hardened.succeeded).toBe('succeeded')
  })

  it('the lifecycle is a sound machine', () => {
    const analysis = analyse(hardened.machine)
    expect([...(analysis.reachable.get('pending') ?? [])].sort()).toEqual([
      'failed',
      'quarantined',
      'running',
      'succeeded',
    ])
    expect(analysis.terminal).toEqual(['succeeded'])
    expect(analysis.endless).toEqual([])
    expect(analysis.deterministic).toBe(true)
    for (const state of STATES) {
      const targets = new Map<string, string>()
      for (const { from, to, on } of hardened.machine.edges) {
        for (const trigger of from === state ? on : []) {
          expect(targets.get(trigger), `${state} on ${trigger}`).toBeUndefined()
          targets.set(trigger, to)
        }
      }
      expect(targets.size === 0, state).toBe(state === 'succeeded')
    }
  })
})

it('every ordered pair of states is an edge, the same state or refused, as the table says', () => {
  for (const { from, to, kind } of PAIRS) {
    expect(move(hardened.machine, from, { to }).kind, `${from} → ${to}`).toBe(kind)
  }
  const counted = (kind: string) => PAIRS.filter((pair) => pair.kind === kind).length
  expect([counted('edge'), counted('same'), counted('invalid')]).toEqual([6, 5, 14])

  const { edges } = hardened.machine
  const documented = edges.filter(({ because }) => because === undefined)
  expect(documented.map(({ from, to }) => `${from} → ${to}`).sort()).toEqual([...EDGES].sort())
  expect(edges.filter(({ because }) => because !== undefined)).toEqual([])
})

describe('pictures of R0', () => {
  it('the machine renders as Mermaid, DOT and a Markdown table with every edge', () => {
    const found = (text: string, pattern: RegExp) =>
      [...text.matchAll(pattern)].map(([, from, to]) => `${from} → ${to}`).sort()
    const mermaid = toMermaid(hardened.machine)
    const dot = toDot(hardened.machine)
    const markdown = toMarkdown(hardened.machine)
    const edges = [...EDGES].sort()
    expect(found(mermaid, /^ {2}(\w+) --> (\w+):/gm)).toEqual(edges)
    expect(found(dot, /^ {2}"(\w+)" -> "(\w+)" /gm)).toEqual(edges)
    expect(found(markdown, /^\| `(\w+)` → `(\w+)` \|/gm)).toEqual(edges)

    const names = (text: string, pattern: RegExp) =>
      [...new Set([...text.matchAll(pattern)].map(([, name]) => name))].sort()
    const states = [...STATES].sort()
    expect(names(mermaid.replaceAll('-->', '\n'), /^ *([a-z]+) *(?::|$)/gm)).toEqual(states)
    expect(names(dot, /^ {2}"(\w+)" \[shape/gm)).toEqual(states)
    expect(names(markdown, /^\| `(\w+)` \|/gm)).toEqual(states)
    expect(mermaid).toContain('[*] --> pending')
    expect(mermaid.match(/(\w+) --> \[\*\]/g)).toEqual(['succeeded --> [*]'])
  })
})

/** Each edge, with the command that takes it alone, and the job that it is told to. */
const TAKEN: readonly [edge: string, script: () => JobScript, command: (now: number) => Command][] =
  [
    ['pending → running', pending, (now) => claimOf(FOREIGN_CLAIM, now)],
    ['running → succeeded', committed, () => ({ kind: 'done', attempt: 1 })],
    ['running → failed', running, () => failOf('error')],
    ['failed → pending', failed, (now) => ({ kind: 'reschedule', runAt: now })],
    ['failed → quarantined', failed, () => ({ kind: 'cancel' })],
    ['quarantined → pending', quarantined, () => ({ kind: 'redrive' })],
  ]

function claimOf(claim: string, now: number): Command {
  return { kind: 'claim', claim, worker: 'worker-2', leaseUntil: now + 30_000, start: true }
}

function failOf(kind: 'error' | 'terminal'): Command {
  const failure: Failure = { class: FAILURE_KINDS[kind], kind, message: 'it broke' }
  return { kind: 'fail', fence: FIRST_FENCE, failure }
}

describe('transitions of R0', () => {
  it('every documented transition is taken by a command', () => {
    expect(TAKEN.map(([edge]) => edge)).toEqual(EDGES)
    for (const [edge, make, command] of TAKEN) {
      const script = make()
      const before = script.facts.length
      const decision = ask(script, command(script.clock.now()))
      expect(stepsOf(decision), edge).toEqual([edge])
      expect(script.facts).toHaveLength(before + 1)
      expect(script.job.state).toBe(edge.split(' → ')[1])
    }
    const due = failed()
    letDue(due)
    expect(stepsOf(due.applyCommand({ kind: 'due' }))).toEqual(['failed → pending'])
    expect(stepsOf(commit(running()))).toEqual(['running → succeeded'])
  })

  it('a transition outside the table is refused with from, to and the allowed targets', () => {
    const outside = PAIRS.filter(({ kind }) => kind === 'invalid')
    for (const { from, to } of outside) {
      const answer = move(hardened.machine, from, { to })
      if (answer.kind !== 'invalid') throw new Error(`${from} → ${to} is ${answer.kind}`)
      expect(answer.error).toBeInstanceOf(InvalidTransition)
      expect(answer.error).toMatchObject({ code: 'E_TRANSITION_INVALID', from, to })
      expect(answer.error.allowed).toEqual(ALLOWED[from])
      expect(answer.error.message).toBe(`Invalid transition: ${from} → ${to}`)
    }
    const asked: [() => JobScript, Command, string][] = [
      [failed, claimOf(FOREIGN_CLAIM, Date.UTC(2026, 1, 1)), 'failed → running'],
      [quarantined, claimOf(FOREIGN_CLAIM, Date.UTC(2026, 1, 1)), 'quarantined → running'],
      [running, { kind: 'redrive' }, 'running → pending'],
      [running, { kind: 'due' }, 'running → pending'],
      [pending, { kind: 'force', to: 'succeeded' }, 'pending → succeeded'],
    ]
    for (const [make, command, transition] of asked) {
      const script = make()
      expect(askInVain(script, command)).toBe('E_TRANSITION_INVALID')
      const refusal = ask(script, command)
      if (refusal.kind !== 'rejected') throw new Error('was not refused')
      expect(refusal.error.message).toBe(`Invalid transition: ${transition}`)
    }
  })

  it('transitions are deterministic for every pair of states', () => {
    const state = fc.constantFrom(...STATES)
    fc.assert(
      fc.property(state, state, (from, to) => {
        const answer = move(hardened.machine, from, { to })
        expect(move(hardened.machine, from, { to })).toEqual(answer)
        const allowed = from === to || ALLOWED[from].includes(to)
        expect(answer.kind !== 'invalid').toBe(allowed)
      }),
    )
  })
})

/** Commands that ask for the state that the job is in already. */
const SAME: readonly [State, Command][] = [
  ['pending', { kind: 'due' }],
  ['pending', { kind: 'redrive' }],
  ['pending', { kind: 'force', to: 'pending' }],
  ['running', { kind: 'start', fence: FIRST_FENCE }],
  ['running', claimOf(FIRST_FENCE.claim, Date.UTC(2026, 1, 1))],
  ['running', { kind: 'force', to: 'running' }],
  ['succeeded', { kind: 'commit', fence: FIRST_FENCE }],
  ['succeeded', { kind: 'done', attempt: 1 }],
  ['failed', { kind: 'force', to: 'failed' }],
  ['quarantined', { kind: 'cancel' }],
  ['quarantined', { kind: 'park' }],
  ['quarantined', { kind: 'force', to: 'quarantined' }],
]

describe('the same state again', () => {
  it('the same state again is a no-op that says so and writes no fact', () => {
    for (const state of STATES) {
      expect(move(hardened.machine, state, { to: state })).toEqual({ kind: 'same', state })
    }
    for (const [state, command] of SAME) {
      const script = IN_STATE[state]()
      const { attempt } = script.job
      expect(askInVain(script, command), `${command.kind} in ${state}`).toBe('same')
      expect(script.job).toMatchObject({ state, attempt })
    }
  })

  it('a worker whose attempt was superseded gets stale and changes nothing', () => {
    const script = running()
    crash(script)
    letDue(script)
    script.claim({ worker: 'worker-2' })
    expect(script.job.attempt).toBe(2)
    // `start` asks for the status that the second attempt is in: the fence comes first.
    for (const command of workerCommands(FIRST_FENCE)) {
      expect(askInVain(script, command), command.kind).toBe('E_STALE_FENCE')
    }
    // `done` names no claim: after the commit there is no lease to hold.
    const foreign = { attempt: 2, claim: FOREIGN_CLAIM }
    for (const command of workerCommands(foreign).filter(({ kind }) => kind !== 'done')) {
      expect(askInVain(script, command), command.kind).toBe('E_STALE_FENCE')
    }
    commit(script)
    for (const command of workerCommands(FIRST_FENCE)) {
      expect(askInVain(script, command), command.kind).toBe('E_STALE_FENCE')
    }
  })
})

const short = (answer: string) =>
  answer.replace('E_TRANSITION_', '').replace('E_', '').toLowerCase()

/**
 * What each command comes to in each state, typed by hand: pending, running, failed (before its
 * time), quarantined, succeeded. In the states that nobody holds the fence is the last holder's.
 */
const ANSWERS: Readonly<Record<Command['kind'], string>> = {
  create: 'job_exists job_exists job_exists job_exists job_exists',
  submit: 'unsupported unsupported unsupported unsupported committed',
  schedule: 'unsupported unsupported unsupported unsupported committed',
  due: 'same invalid not_due invalid committed',
  reschedule: 'fact invalid fact invalid committed',
  prioritise: 'fact fact fact fact committed',
  replace: 'fact job_started job_started job_started committed',
  exhaust: 'unsupported unsupported unsupported unsupported committed',
  claim: 'fact stale_fence invalid invalid committed',
  start: 'stale_fence same stale_fence stale_fence committed',
  step: 'stale_fence fact stale_fence stale_fence committed',
  commit: 'stale_fence fact stale_fence stale_fence same',
  done: 'stale_fence stale_fence stale_fence stale_fence same',
  fail: 'stale_fence fact stale_fence stale_fence committed',
  release: 'stale_fence fact stale_fence stale_fence committed',
  suspend: 'stale_fence unsupported stale_fence stale_fence committed',
  signal: 'unsupported unsupported unsupported unsupported unsupported',
  arrive: 'same same same same committed',
  wait: 'stale_fence unsupported stale_fence stale_fence committed',
  expire: 'stale_fence lease_live stale_fence stale_fence committed',
  cancel: 'fact fact fact same committed',
  park: 'fact fact fact same committed',
  redrive: 'same invalid invalid fact committed',
  discard: 'unsupported unsupported unsupported unsupported committed',
  force: 'fact fact same fact committed',
  // The doctor's note that a row was rebuilt moves nothing, and so it may stand after an end.
  repair: 'fact fact fact fact fact',
}

describe('every command in every state', () => {
  it('an invalid command is never swallowed', () => {
    const answers = new Map<string, string[]>()
    for (const state of ['pending', 'running', 'failed', 'quarantined', 'succeeded'] as const) {
      for (const command of everyCommand(FIRST_FENCE, IN_STATE[state]().clock.now())) {
        const script = IN_STATE[state]()
        const before = { job: script.job, facts: script.facts.length }
        const answer = short(answerOf(ask(script, command)))
        expect(script.facts.length - before.facts).toBe(answer === 'fact' ? 1 : 0)
        if (answer !== 'fact') expect(script.job).toEqual(before.job)
        answers.set(command.kind, [...(answers.get(command.kind) ?? []), answer])
      }
    }
    const told = Object.fromEntries([...answers].map(([kind, list]) => [kind, list.join(' ')]))
    expect(told).toEqual(ANSWERS)
  })

  it('only a running job succeeds or fails', () => {
    const ends: Command[] = [
      { kind: 'commit', fence: FIRST_FENCE },
      { kind: 'done', attempt: 1 },
      failOf('error'),
      failOf('terminal'),
    ]
    for (const state of STATES.filter((other) => other !== 'running')) {
      for (const command of ends) askInVain(IN_STATE[state](), command)
    }
    expect(stepsOf(commit(running()))).toEqual(['running → succeeded'])
    expect(stepsOf(ask(committed(), { kind: 'done', attempt: 1 }))).toEqual(['running → succeeded'])
    expect(stepsOf(failRetryably(running()))).toEqual(['running → failed'])
  })

  it('a command for a job that does not exist answers JobNotFound', () => {
    const context: Context = {
      now: 1000,
      random: 0,
      actor: 'operator',
      operator: 'ann',
      note: 'looked into it',
    }
    const commands = everyCommand(FIRST_FENCE, 1000).filter(({ kind }) => kind !== 'create')
    expect(commands).toHaveLength(25)
    for (const command of commands) {
      const actor = command.kind === 'repair' ? 'doctor' : 'operator'
      const answer = decide(hardened, null, command, { ...context, actor })
      if (answer.kind !== 'rejected') throw new Error(`${command.kind} was accepted`)
      expect(answer.error, command.kind).toBeInstanceOf(JobNotFound)
      expect(answer.error.code).toBe('E_JOB_NOT_FOUND')
    }
  })
})

describe('the lifecycle of a job of R0', () => {
  it('a job carries the name and version of its lifecycle', () => {
    const script = pending()
    expect(script.facts[0]?.created).toMatchObject({ lifecycle: 'hardened', lifecycleVersion: 1 })
    expect(script.job).toMatchObject({ lifecycle: 'hardened', lifecycleVersion: 1 })
    expect(findLifecycle('hardened', 1)).toBe(hardened)
    expect(() => findLifecycle('hardened', 2)).toThrow(LifecycleUnknown)
    expect(() => findLifecycle('hardened', 0)).toThrow(LifecycleUnknown)
    expect(() => findLifecycle('Hardened', 1)).toThrow(LifecycleUnknown)
  })

  it('a claim moves pending to running and raises the attempt by one', () => {
    const script = pending()
    expect(script.job.attempt).toBe(0)
    script.clock.advance(5)
    const first = factOf(script.claim())
    expect(script.job).toMatchObject({ state: 'running', attempt: 1, updatedAt: first.at })
    expect(first.at).toBe(script.clock.now())
    expect(inVain(script, () => script.claim({ worker: 'worker-2' }))).toBe('E_STALE_FENCE')

    crash(script)
    letDue(script)
    const second = factOf(script.claim())
    expect(script.job).toMatchObject({ state: 'running', attempt: 2, updatedAt: second.at })
  })

  it('rescheduling a pending job changes its time and not its state', () => {
    const script = pending()
    const runAt = script.clock.now() + 5000
    const fact = factOf(script.applyCommand({ kind: 'reschedule', runAt }))
    expect(fact).toMatchObject({ from: 'pending', to: 'pending', runAt })
    expect(fact.via).toBeUndefined()
    expect(script.job).toMatchObject({ state: 'pending', runAt })
    script.clock.advance(4999)
    expect(inVain(script, () => script.claim())).toBe('E_NOT_DUE')
    script.clock.advance(1)
    expect(stepsOf(script.claim())).toEqual(['pending → running'])
  })
})

describe('stalls, releases and cancellation of R0', () => {
  it('a stalled job goes through failed to pending in one step and waits 60 seconds', () => {
    const script = running()
    const expire: Command = { kind: 'expire', fence: script.fence }
    script.clock.advance(29_999)
    expect(askInVain(script, expire)).toBe('E_LEASE_LIVE')
    script.clock.advance(1)
    const decision = script.applyCommand(expire, { actor: 'engine' })
    expect(stepsOf(decision)).toEqual(['running → failed', 'failed → pending'])
    expect(factOf(decision).execution).toMatchObject({
      statuses: ['ABORTED'],
      abort: 'lease_expired',
    })
    expect(script.job).toMatchObject({ state: 'pending', crashes: 1, failures: 0, releases: 0 })
    expect(script.job.runAt).toBe(script.clock.now() + 60_000)

    script.clock.advance(59_999)
    expect(inVain(script, () => script.claim())).toBe('E_NOT_DUE')
    script.clock.advance(1)
    expect(stepsOf(script.claim())).toEqual(['pending → running'])
  })

  it('a job whose crash budget is spent is quarantined', () => {
    const script = running()
    for (const crashes of [1, 2, 3]) {
      crash(script)
      expect(script.job).toMatchObject({ state: 'pending', crashes })
      letDue(script)
      script.claim()
    }
    const fourth = crash(script)
    expect(stepsOf(fourth)).toEqual(['running → failed', 'failed → quarantined'])
    expect(factOf(fourth).reason).toBe('crashes_exhausted')
    expect(script.job).toMatchObject({ state: 'quarantined', crashes: 3, failures: 0 })
  })

  it('a job that is given back returns to pending without delay or cost', () => {
    const script = running()
    script.clock.advance(10)
    const decision = script.applyCommand({ kind: 'release', fence: script.fence })
    expect(stepsOf(decision)).toEqual(['running → failed', 'failed → pending'])
    const now = script.clock.now()
    expect(script.job).toMatchObject({ runAt: now, failures: 0, crashes: 0, releases: 1 })
    expect(stepsOf(script.claim())).toEqual(['pending → running'])
  })

  it('a cancelled job is quarantined with the reason cancelled', () => {
    const expected = {
      failed: ['failed → quarantined'],
      running: ['running → failed', 'failed → quarantined'],
      pending: ['pending → running', 'running → failed', 'failed → quarantined'],
    }
    for (const state of ['failed', 'running', 'pending'] as const) {
      const script = IN_STATE[state]()
      const decision = script.applyCommand({ kind: 'cancel' })
      expect(stepsOf(decision)).toEqual(expected[state])
      expect(factOf(decision).reason).toBe('cancelled')
      expect(script.job).toMatchObject({ state: 'quarantined', reason: 'cancelled' })
      expect(script.job.execution).toBeNull()
      const last = executionsOf(script.facts).at(-1)
      expect(last).toMatchObject({ attempt: 1, status: 'ABORTED' })
      expect(last?.abort).toBe(state === 'failed' ? 'error' : 'cancelled')
    }
    const never = pending()
    expect(factOf(never.applyCommand({ kind: 'cancel' })).execution).toMatchObject({
      attempt: 1,
      statuses: ['LEASED', 'ABORTED'],
      worker: 'engine',
      abort: 'cancelled',
    })
    expect(never.job.attempt).toBe(1)
  })
})
