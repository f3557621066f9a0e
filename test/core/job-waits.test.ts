// Waits and signals: what is decided, and what the ledger says about them.
import {
  type Command,
  checkFacts,
  checkP9,
  type Decision,
  decide,
  defineLifecycle,
  type Fact,
  LIFECYCLES,
  laneOf,
  ReplayMismatch,
  standard,
} from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import {
  findSignal,
  findWait,
  reasonOf,
  reasonToFind,
  type Wait,
} from '../../src/core/job/waits.ts'
import { crash, factOf, HOUR, played } from './job-play.ts'

const APPROVAL: Wait = { for: 'signal', name: 'approval', n: 1, until: null }
const PAUSE = { for: 'sleep', name: 'pause', n: 1 } as const

const codeOf = (decision: Decision) =>
  decision.kind === 'rejected' ? decision.error.code : decision.kind

const running = (fields: Parameters<JobScript['create']>[0] = {}) => {
  const script = new JobScript(standard)
  script.create(fields)
  script.claim()
  return script
}
const wait = (script: JobScript, own: Wait = APPROVAL) =>
  script.applyCommand({ kind: 'wait', fence: script.fence, wait: own }, { actor: 'worker' })
const send = (script: JobScript, name = 'approval', key = 'k1') =>
  script.applyCommand({ kind: 'signal', name, key })
const waiting = (own: Wait = APPROVAL) => {
  const script = running()
  wait(script, own)
  expect(script.job.state).toBe('waiting')
  return script
}
const isWhole = ({ lifecycle, job, facts }: JobScript) => {
  expect(checkFacts(lifecycle, facts)).toEqual([])
  expect(checkP9(job, facts)).toEqual([])
}

describe('a wait', () => {
  it('without a time-out ends the attempt, spends nothing, and its job is idle', () => {
    const script = running()
    const before = script.job
    const fact = factOf(wait(script))
    expect(fact).toMatchObject({
      trigger: 'wait',
      from: 'running',
      to: 'waiting',
      wait: APPROVAL,
      runAt: null,
      reason: 'signal:approval',
      execution: { attempt: 1, statuses: ['ABORTED'], abort: 'suspended' },
    })
    expect(fact).not.toHaveProperty('spends')
    const { failures, crashes, releases } = before
    expect(script.job).toMatchObject({ execution: null, attempt: 1, failures, crashes, releases })
    expect(laneOf(standard, script.job, script.clock.now())).toBe('idle')
    script.clock.advance(1000 * HOUR)
    expect(codeOf(script.applyCommand({ kind: 'due' }))).toBe('E_NOT_DUE')
    isWhole(script)
  })

  it('with a time-out waits for it, and is due at that very millisecond', () => {
    const script = running()
    const until = script.clock.now() + 500
    wait(script, { ...APPROVAL, until })
    expect(script.job).toMatchObject({ state: 'waiting', runAt: until })
    expect(laneOf(standard, script.job, until + 1)).toBe('waiting')
    script.clock.advance(499)
    expect(codeOf(script.applyCommand({ kind: 'due' }))).toBe('E_NOT_DUE')
    script.clock.advance(1)
    expect(codeOf(script.applyCommand({ kind: 'due' }))).toBe('fact')
    expect(script.job).toMatchObject({ state: 'queued', reason: 'resumed' })
    isWhole(script)
  })

  it.each([
    [1, 'wait'],
    [0, 'receive'],
    [-1, 'receive'],
  ])('that ends in %i ms is noted as %s', (ms, trigger) => {
    const script = running()
    const fact = factOf(wait(script, { ...PAUSE, until: script.clock.now() + ms }))
    expect(fact.trigger).toBe(trigger)
    expect(fact.received).toEqual(trigger === 'receive' ? PAUSE : undefined)
    expect(script.job.state).toBe(trigger === 'receive' ? 'running' : 'waiting')
    isWhole(script)
  })

  it('looks for a signal before it looks at its time', () => {
    const script = running()
    send(script)
    const fact = factOf(wait(script, { ...APPROVAL, until: script.clock.now() - 1 }))
    expect(fact.received).toEqual({ for: 'signal', name: 'approval', n: 1, signal: 3 })
    isWhole(script)
  })

  it('that is a sleep takes no signal of its name', () => {
    const script = running()
    send(script, 'pause')
    expect(factOf(wait(script, { ...PAUSE, until: script.clock.now() + 5 })).trigger).toBe('wait')
    const direct = { kind: 'wait', wait: { ...PAUSE, until: 0 }, next: 3 } as const
    const other = running()
    const command: Command = { ...direct, fence: other.fence }
    const context = { now: other.clock.now(), random: 0, actor: 'worker' } as const
    expect(factOf(decide(standard, other.job, command, context)).received).toEqual(PAUSE)
  })

  it('that is over is the same when it is asked again, also past its time', () => {
    const script = running()
    send(script)
    wait(script)
    expect(wait(script).kind).toBe('same')
    expect(wait(script, { ...APPROVAL, until: 0 }).kind).toBe('same')
    expect(script.facts).toHaveLength(4)
  })

  it('keeps the end that it began with', () => {
    const script = running()
    const until = script.clock.now() + HOUR
    wait(script, { ...APPROVAL, until })
    script.operate({ kind: 'force', to: 'queued' })
    script.clock.advance(1000)
    script.claim()
    const fact = factOf(wait(script, { ...APPROVAL, until: until + HOUR }))
    expect(fact.wait).toEqual({ ...APPROVAL, until })
    isWhole(script)
  })

  it('without a time-out is looked at again when the deadline of its job passes', () => {
    const deadlineAt = new JobScript(standard).clock.now() + HOUR
    const script = running({ deadlineAt })
    wait(script)
    expect(script.job.runAt).toBe(deadlineAt)
    script.clock.advance(HOUR)
    expect(codeOf(script.applyCommand({ kind: 'due' }))).toBe('fact')
  })

  it('past the deadline of its job is refused', () => {
    const deadlineAt = new JobScript(standard).clock.now() + 1000
    const script = running({ deadlineAt })
    script.clock.advance(1000)
    expect(codeOf(wait(script))).toBe('E_DEADLINE_PASSED')
  })

  it('gives the job up after 10,000 attempts, and never before', () => {
    const script = running()
    const context = { now: script.clock.now(), random: 0, actor: 'worker' } as const
    const ask = (attempt: number) => {
      const command = { kind: 'wait', fence: { ...script.fence, attempt }, wait: APPROVAL } as const
      return factOf(decide(standard, { ...script.job, attempt }, command, context))
    }
    expect(ask(9_999).trigger).toBe('wait')
    expect(ask(10_000)).toMatchObject({
      trigger: 'give-up',
      to: 'quarantined',
      reason: 'waits_exhausted',
      error: { message: 'Waited too often', kind: 'waits_exhausted', type: 'TERMINAL' },
    })
  })

  it('under another fence, or after the lease has expired, is stale', () => {
    const script = running()
    const fence = { ...script.fence, attempt: 2 }
    expect(codeOf(script.applyCommand({ kind: 'wait', fence, wait: APPROVAL }))).toBe(
      'E_STALE_FENCE',
    )
    script.clock.advance(30_000)
    expect(codeOf(wait(script))).toBe('E_STALE_FENCE')
    // Nor does the attempt that the wait has ended wait a second time.
    const suspended = running()
    const own = suspended.fence
    wait(suspended)
    const again = { kind: 'wait', fence: own, wait: APPROVAL } as const
    expect(codeOf(suspended.applyCommand(again))).toBe('E_STALE_FENCE')
  })

  it.each([
    ['wait.for', { ...APPROVAL, for: 'money' as 'signal' }],
    ['wait.name', { ...APPROVAL, name: '' }],
    ['wait.name', { ...APPROVAL, name: 'a\u0000b' }],
    ['wait.n', { ...APPROVAL, n: 0 }],
    ['wait.n', { ...APPROVAL, n: 1.5 }],
    ['wait.until', { ...APPROVAL, until: -1 }],
    ['wait.until', { ...PAUSE, until: null }],
  ])('with a bad %s is refused', (field, own) => {
    const decision = wait(running(), own)
    expect(codeOf(decision)).toBe('E_COMMAND_INVALID')
    expect(decision).toMatchObject({ error: { details: { field } } })
  })
})

describe('a signal', () => {
  it('wakes the job that waits for its name, in the same fact', () => {
    const script = waiting()
    script.clock.advance(7)
    const fact = factOf(send(script))
    expect(fact).toMatchObject({
      trigger: 'signal',
      from: 'waiting',
      to: 'queued',
      signal: { name: 'approval', key: 'k1' },
      runAt: script.clock.now(),
      reason: 'resumed',
    })
    script.claim()
    expect(factOf(wait(script)).received?.signal).toBe(fact.seq)
    isWhole(script)
  })

  it('of another name is kept, and wakes nothing', () => {
    const script = waiting()
    expect(hops(factOf(send(script, 'payment')))).toBe('waiting→waiting')
    expect(script.job).toMatchObject({ state: 'waiting', reason: 'signal:approval', runAt: null })
    isWhole(script)
  })

  it('does not wake a job that sleeps, even under the name of its sleep', () => {
    const script = running()
    wait(script, { ...PAUSE, until: script.clock.now() + HOUR })
    expect(hops(factOf(send(script, 'pause')))).toBe('waiting→waiting')
    isWhole(script)
  })

  it('with the key of an earlier one is the same, whatever has become of the job', () => {
    const script = running()
    send(script)
    expect(send(script).kind).toBe('same')
    expect(send(script, 'approval', 'k2').kind).toBe('fact')
    expect(send(script, 'payment').kind).toBe('fact')
    script.applyCommand({ kind: 'commit', fence: script.fence, effects: 1 })
    expect(send(script).kind).toBe('same')
    expect(codeOf(send(script, 'approval', 'k3'))).toBe('E_COMMITTED')
    script.applyCommand({ kind: 'done', attempt: 1 })
    expect(send(script).kind).toBe('same')
    expect(codeOf(send(script, 'approval', 'k3'))).toBe('E_JOB_ENDED')
    isWhole(script)
  })

  it('to a job that was cancelled is refused', () => {
    const script = waiting()
    script.applyCommand({ kind: 'cancel' })
    expect(script.job).toMatchObject({ state: 'cancelled', outcome: 'cancelled' })
    expect(codeOf(send(script))).toBe('E_JOB_ENDED')
  })

  it('to a job that is parked is kept, and read after the redrive', () => {
    const script = waiting()
    script.operate({ kind: 'park' })
    expect(hops(factOf(send(script)))).toBe('quarantined→quarantined')
    script.operate({ kind: 'redrive' })
    script.claim()
    expect(factOf(wait(script)).received?.signal).toBe(5)
    isWhole(script)
  })

  it.each([
    ['name', { name: '' }],
    ['name', { name: 'a\u0000' }],
    ['key', { key: '' }],
    ['key', { key: 'x'.repeat(10_000) }],
  ])('with a bad %s is refused', (field, own) => {
    const script = running()
    const decision = script.applyCommand({ kind: 'signal', name: 'a', key: 'k', ...own })
    expect(codeOf(decision)).toBe('E_COMMAND_INVALID')
    expect(decision).toMatchObject({ error: { details: { field } } })
  })

  it('is received in the order in which signals of its name were sent, each once', () => {
    const script = running()
    for (const key of ['k1', 'k2', 'k3']) send(script, 'approval', key)
    send(script, 'payment')
    const receive = (n: number, name = 'approval') =>
      factOf(wait(script, { ...APPROVAL, name, n })).received?.signal
    expect([receive(1), receive(1, 'payment'), receive(2), receive(3)]).toEqual([3, 6, 4, 5])
    expect(factOf(wait(script, { ...APPROVAL, n: 4 })).trigger).toBe('wait')
    isWhole(script)
  })

  it('that woke a job survives the crash of the attempt that would have read it', () => {
    const script = waiting()
    send(script)
    script.claim()
    crash(script)
    script.clock.advance(HOUR)
    script.applyCommand({ kind: 'due' })
    script.claim()
    expect(factOf(wait(script)).received?.signal).toBe(4)
    isWhole(script)
  })
})

const hops = ({ from, to }: Fact) => `${from}→${to}`

describe('a job that waits', () => {
  it.each([-1, 0, 1000])('is not rescheduled, to %i ms from now', (ms) => {
    const script = waiting({ ...APPROVAL, until: Date.UTC(2027, 0, 1) })
    const runAt = script.clock.now() + ms
    expect(codeOf(script.applyCommand({ kind: 'reschedule', runAt }))).toBe('E_TRANSITION_INVALID')
    expect(script.job.state).toBe('waiting')
  })

  it('is not claimed', () => {
    expect(codeOf(waiting().claim())).toBe('E_TRANSITION_INVALID')
  })

  it('says what it waits for', () => {
    expect(reasonOf({ for: 'sleep', name: 'pause' })).toBe('sleep')
    expect(reasonOf({ for: 'signal', name: 'approval' })).toBe('signal:approval')
    // Filters look for the same words.
    expect(reasonToFind('approval')).toBe(waiting().job.reason)
    expect(reasonToFind(undefined)).toBeUndefined()
  })
})

describe('a job that is due for another cause', () => {
  it('has no reason to be resumed', () => {
    const script = new JobScript(standard)
    script.create({ runAt: script.clock.now() + 5 })
    script.clock.advance(5)
    expect(factOf(script.applyCommand({ kind: 'due' }))).not.toHaveProperty('reason')
  })
})

describe.each(LIFECYCLES.filter(({ name }) => name !== 'standard'))('lifecycle $name', (own) => {
  it('has no waits and takes no signals', () => {
    const script = played(own, 'create', 'claim')
    expect(codeOf(wait(script))).toBe('E_UNSUPPORTED')
    expect(codeOf(send(script))).toBe('E_UNSUPPORTED')
    expect(codeOf(wait(script, { ...PAUSE, until: 0 }))).toBe('E_UNSUPPORTED')
  })
})

describe('a lifecycle that waits but has no parked state', () => {
  const patient = defineLifecycle({
    name: 'patient',
    version: 1,
    initial: 'todo',
    states: {
      todo: { role: 'ready', meaning: 'May be claimed.' },
      doing: { role: 'held', meaning: 'Is held.' },
      asleep: { role: 'waiting', meaning: 'Waits.' },
      done: { role: 'succeeded', meaning: 'Is done.' },
      lost: { role: 'failed', meaning: 'Is lost.' },
    },
    edges: [
      { from: 'todo', to: 'doing', on: ['claim'] },
      { from: 'doing', to: 'done', on: ['succeed'] },
      { from: 'doing', to: 'asleep', on: ['wait'] },
      { from: 'asleep', to: 'todo', on: ['due', 'signal'] },
      { from: 'asleep', to: 'lost', on: ['cancel'] },
      { from: 'doing', to: 'lost', on: ['fail', 'give-up', 'reject', 'cancel'] },
      { from: 'doing', to: 'todo', on: ['expire', 'release'] },
    ],
  })

  it('makes a parked job ready that gets its signal; it stays parked until the redrive', () => {
    const script = played(patient, 'create', 'claim')
    wait(script)
    script.operate({ kind: 'park' })
    expect(script.job).toMatchObject({ state: 'asleep', blockedReason: 'parked' })
    expect(hops(factOf(send(script)))).toBe('asleep→todo')
    expect(laneOf(patient, script.job, script.clock.now())).toBe('parked')
    expect(codeOf(script.claim())).toBe('E_JOB_PARKED')
    script.operate({ kind: 'redrive' })
    script.claim()
    expect(factOf(wait(script)).received?.signal).toBe(5)
    isWhole(script)
  })
})

describe('the ledger', () => {
  it('says of a signal whether it is known and awaited', () => {
    const { facts } = waiting()
    expect(findSignal(facts, { name: 'approval', key: 'k1' })).toEqual({
      known: false,
      awaited: true,
    })
    expect(findSignal([], { name: 'approval', key: 'k1' })).toEqual({
      known: false,
      awaited: false,
    })
    const script = running()
    send(script)
    wait(script)
    expect(findSignal(script.facts, { name: 'approval', key: 'k1' })).toEqual({
      known: true,
      awaited: false,
    })
  })

  it('says of a wait what it began with, whether it is over, and which signal is next', () => {
    const script = running()
    send(script)
    expect(findWait(script.facts, APPROVAL)).toEqual({ wait: APPROVAL, known: false, next: 3 })
    wait(script)
    expect(findWait(script.facts, APPROVAL)).toEqual({ wait: APPROVAL, known: true })
    expect(findWait(script.facts, { ...APPROVAL, n: 2 })).toMatchObject({ known: false })
    const sleep = { ...PAUSE, name: 'approval', until: 5 }
    expect(findWait(script.facts, sleep)).toEqual({ wait: sleep, known: false })
  })
})

describe('a handler that waits for other things than before', () => {
  it('is told what it waited for, and quarantined with that reason', () => {
    const error = new ReplayMismatch('job-1', [], ['sleep "a"', 'signal "b"'])
    expect(error.message).toBe(
      'Job job-1 has waited for nothing, and its handler now waits for sleep "a", signal "b"',
    )
    const script = running()
    const failure = {
      class: 'invalid_input',
      kind: 'invalid_input',
      message: 'it differs',
    } as const
    const fail = (code?: string): Command => ({
      kind: 'fail',
      fence: script.fence,
      failure: { ...failure, ...(code !== undefined && { code }) },
    })
    script.applyCommand(fail('E_REPLAY_MISMATCH'))
    expect(script.job).toMatchObject({ state: 'quarantined', reason: 'replay_mismatch' })
    script.operate({ kind: 'redrive' })
    script.claim()
    script.applyCommand(fail())
    expect(script.job.reason).toBe('invalid_input')
  })
})
