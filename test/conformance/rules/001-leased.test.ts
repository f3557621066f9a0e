/** R1 (state model): executions, the states that follow from them, and the lease. */
import fc from 'fast-check'
import {
  type Command,
  executionMachine,
  executionsOf,
  type Failure,
  hopsOf,
  leased,
  move,
  stateOfExecutions,
} from 'pawl/rules'
import type { JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import {
  ask,
  askInVain,
  commit,
  crash,
  factOf,
  failRetryably,
  failTerminally,
  inVain,
  letDue,
  letLeaseExpire,
  stepsOf,
} from '../../support/job-answers.ts'
import { histories } from '../../support/random-history.ts'
import {
  committedJob,
  doneJob,
  FOREIGN_CLAIM,
  holderCommands,
  lastExecution,
  leasedJob,
  startedJob,
  submitted,
} from '../001-leased-helpers.ts'

const RUNS = { numRuns: 300 }
const lives = histories({ lifecycles: [leased] })

const STATUSES = ['LEASED', 'IN_PROGRESS', 'COMMITTED', 'DONE', 'ABORTED'] as const

/** From each status to each status, in the order of `STATUSES`. */
const EXECUTION_TABLE = {
  LEASED: ['same', 'edge', 'invalid', 'invalid', 'edge'],
  IN_PROGRESS: ['invalid', 'same', 'edge', 'invalid', 'edge'],
  COMMITTED: ['invalid', 'invalid', 'same', 'edge', 'invalid'],
  DONE: ['invalid', 'invalid', 'invalid', 'same', 'invalid'],
  ABORTED: ['invalid', 'invalid', 'invalid', 'invalid', 'same'],
} as const

it(
  'every ordered pair of execution statuses is an edge, the same status or refused, as documented',
  showExecutionTable,
)

function showExecutionTable(): void {
  expect([...executionMachine.states.keys()]).toEqual(STATUSES)
  expect(executionMachine.initial).toBe('LEASED')
  for (const from of STATUSES) {
    const row = STATUSES.map((to) => move(executionMachine, from, { to }).kind)
    expect(row, from).toEqual(EXECUTION_TABLE[from])
    const { terminal = false } = executionMachine.states.get(from) ?? {}
    expect(terminal, from).toBe(from === 'DONE' || from === 'ABORTED')
  }
  expect(executionMachine.edges).toHaveLength(5)
  expect(executionMachine.edges.filter(({ because }) => because !== undefined)).toEqual([])
}

const STATES = ['PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED'] as const

/** From each state to each state, in the order of `STATES`; the plus is an edge of our own. */
const JOB_TABLE = {
  PENDING: ['same', 'edge', 'invalid', 'invalid'],
  RUNNING: ['edge', 'same', 'edge', '+edge'],
  SUCCEEDED: ['invalid', 'invalid', 'same', 'invalid'],
  FAILED: ['invalid', 'invalid', 'invalid', 'same'],
} as const

it('every ordered pair of job states is an edge, the same state or refused, as documented', () => {
  expect([...leased.machine.states.keys()]).toEqual(STATES)
  for (const from of STATES) {
    const row = STATES.map((to) => {
      const answer = move(leased.machine, from, { to })
      const added = answer.kind === 'edge' && answer.edge.because !== undefined
      return `${added ? '+' : ''}${answer.kind}`
    })
    expect(row, from).toEqual(JOB_TABLE[from])
  }
  const added = leased.machine.edges.filter(({ because }) => because !== undefined)
  expect(added).toHaveLength(1)
  expect(added[0]?.because).toMatch(/\w+ \w+/)
})

it(
  'the happy path goes from PENDING to SUCCEEDED through LEASED, IN_PROGRESS, COMMITTED and DONE',
  showHappyPath,
)

function showHappyPath(): void {
  const script = submitted()
  const seen: string[][] = []
  const look = () => {
    const [execution] = executionsOf(script.facts)
    seen.push([script.job.state, execution?.status ?? 'none'])
  }
  look()
  script.claim({ start: false })
  look()
  script.applyCommand({ kind: 'start', fence: script.fence })
  look()
  commit(script, 2)
  look()
  script.applyCommand({ kind: 'done', attempt: 1 })
  look()
  expect(seen).toEqual([
    ['PENDING', 'none'],
    ['RUNNING', 'LEASED'],
    ['RUNNING', 'IN_PROGRESS'],
    ['RUNNING', 'COMMITTED'],
    ['SUCCEEDED', 'DONE'],
  ])
  expect(executionsOf(script.facts)).toHaveLength(1)
}

describe('lease and start', () => {
  it('leasing an execution makes the job RUNNING', () => {
    const script = submitted()
    const decision = script.claim({ worker: 'worker-7', leaseMs: 20_000, start: false })
    expect(stepsOf(decision)).toEqual(['PENDING → RUNNING'])
    expect(factOf(decision).execution?.statuses).toEqual(['LEASED'])
    expect(script.facts).toHaveLength(2)
    expect(lastExecution(script)).toMatchObject({
      execId: `${script.job.id}/1`,
      status: 'LEASED',
      leaseOwner: 'worker-7',
      leaseExpiresAt: script.clock.now() + 20_000,
    })
  })

  it('starting the leased execution makes it IN_PROGRESS and leaves the job RUNNING', () => {
    const script = leasedJob()
    script.clock.advance(40)
    const start: Command = { kind: 'start', fence: script.fence }
    const fact = factOf(script.applyCommand(start))
    expect(fact).toMatchObject({ from: 'RUNNING', to: 'RUNNING' })
    expect(fact.execution).toMatchObject({ attempt: 1, statuses: ['IN_PROGRESS'] })
    expect(script.job.state).toBe('RUNNING')
    const startedAt = script.clock.now()
    expect(lastExecution(script)).toMatchObject({ status: 'IN_PROGRESS', startedAt })
    script.clock.advance(5)
    expect(askInVain(script, start)).toBe('same')
    expect(lastExecution(script).startedAt).toBe(startedAt)
  })

  it('every lease has a new attempt number and a new exec_id', () => {
    const script = submitted()
    for (const attempt of [1, 2, 3]) {
      script.claim({ start: attempt !== 2 })
      expect(script.job.attempt).toBe(attempt)
      expect(lastExecution(script)).toMatchObject({
        attempt,
        execId: `${script.job.id}/${attempt}`,
      })
      crash(script)
      letDue(script)
    }
    fc.assert(
      fc.property(lives, ({ script: { facts } }) => {
        const executions = executionsOf(facts)
        expect(executions.map(({ attempt }) => attempt)).toEqual(executions.map((_, i) => i + 1))
        expect(new Set(executions.map(({ execId }) => execId)).size).toBe(executions.length)
        const leases = facts.filter(({ execution }) => execution?.statuses[0] === 'LEASED')
        expect(leases).toHaveLength(executions.length)
      }),
      RUNS,
    )
  })
})

describe('the end of an execution before its commit', () => {
  it('a lease that expires before the start aborts the execution as a release', () => {
    const script = leasedJob()
    expect(stepsOf(crash(script))).toEqual(['RUNNING → PENDING'])
    expect(lastExecution(script)).toMatchObject({ status: 'ABORTED', abort: 'lease_expired' })
    expect(script.job).toMatchObject({ releases: 1, crashes: 0, failures: 0 })
    expect(script.job.runAt).toBe(script.clock.now())
  })

  it('a lease that expires after the start aborts the execution as a crash', () => {
    const script = startedJob()
    expect(stepsOf(crash(script))).toEqual(['RUNNING → PENDING'])
    expect(lastExecution(script)).toMatchObject({ status: 'ABORTED', abort: 'lease_expired' })
    expect(script.job).toMatchObject({ releases: 0, crashes: 1, failures: 0 })
  })

  it('an error or a time-out before the commit aborts the execution with its reason', () => {
    for (const [kind, abort] of [
      ['error', 'error'],
      ['timeout', 'timeout'],
    ] as const) {
      for (const make of [leasedJob, startedJob]) {
        const script = make()
        const failure: Failure = { class: 'retryable', kind, message: 'it broke' }
        const decision = script.applyCommand({ kind: 'fail', fence: script.fence, failure })
        expect(stepsOf(decision)).toEqual(['RUNNING → PENDING'])
        expect(lastExecution(script)).toMatchObject({ status: 'ABORTED', abort })
        expect(lastExecution(script).error?.message).toBe('it broke')
        expect(script.job).toMatchObject({ failures: 1, crashes: 0, releases: 0 })
      }
    }
  })

  it('a crash before COMMITTED is retried with a new execution', () => {
    const script = startedJob()
    crash(script)
    letDue(script)
    script.claim({ worker: 'worker-2' })
    expect(stepsOf(commit(script))).toEqual(['RUNNING → SUCCEEDED'])
    const executions = executionsOf(script.facts)
    expect(executions.map(({ attempt, status }) => [attempt, status])).toEqual([
      [1, 'ABORTED'],
      [2, 'DONE'],
    ])
    expect(executions[0]?.execId).not.toBe(executions[1]?.execId)
  })

  it('a cancelled job ends in FAILED, and redrive is Unsupported', () => {
    const never = submitted()
    const cancelled = never.applyCommand({ kind: 'cancel' })
    expect(stepsOf(cancelled)).toEqual(['PENDING → RUNNING', 'RUNNING → FAILED'])
    expect(factOf(cancelled).execution?.statuses).toEqual(['LEASED', 'ABORTED'])
    expect(lastExecution(never).leaseOwner).toBe('engine')
    for (const make of [leasedJob, startedJob, submitted]) {
      const script = make()
      script.applyCommand({ kind: 'cancel' })
      expect(script.job).toMatchObject({ state: 'FAILED', reason: 'cancelled', attempt: 1 })
      const end = { status: 'ABORTED', abort: 'cancelled', final: true }
      expect(lastExecution(script)).toMatchObject(end)
      expect(askInVain(script, { kind: 'redrive' })).toBe('E_UNSUPPORTED')
      expect(inVain(script, () => script.claim())).toBe('E_TRANSITION_INVALID')
    }
  })
})

it(
  'a terminal error, bad input or a spent budget ends in FAILED with a final ABORTED execution',
  showFinalEnds,
)

function showFinalEnds(): void {
  const expectFailed = (script: JobScript, reason: string, abort: string) => {
    expect(script.job).toMatchObject({ state: 'FAILED', outcome: 'failed', reason })
    const executions = executionsOf(script.facts)
    expect(executions.at(-1)).toMatchObject({ status: 'ABORTED', abort, final: true })
    expect(executions.filter(({ final }) => final)).toHaveLength(1)
  }
  const terminal = startedJob()
  expect(stepsOf(failTerminally(terminal))).toEqual(['RUNNING → FAILED'])
  expectFailed(terminal, 'validation', 'error')

  const unreadable = startedJob()
  const failure = { class: 'invalid_input', kind: 'invalid_input', message: 'no JSON' } as const
  const refused = unreadable.applyCommand({ kind: 'fail', fence: unreadable.fence, failure })
  expect(stepsOf(refused)).toEqual(['RUNNING → FAILED'])
  expectFailed(unreadable, 'invalid_input', 'invalid_input')

  const ways: [(script: JobScript) => unknown, string, string][] = [
    [failRetryably, 'retries_exhausted', 'error'],
    [crash, 'crashes_exhausted', 'lease_expired'],
  ]
  for (const [end, reason, abort] of ways) {
    const script = startedJob()
    for (const attempt of [1, 2, 3]) {
      end(script)
      expect(script.job).toMatchObject({ state: 'PENDING', attempt })
      letDue(script)
      script.claim()
    }
    end(script)
    expectFailed(script, reason, abort)
  }
}

describe('the state of a job and its executions', () => {
  it('the job returns to PENDING only when no execution is COMMITTED', () => {
    for (const make of [leasedJob, startedJob]) {
      const script = make()
      crash(script)
      expect(script.job.state).toBe('PENDING')
    }
    for (const make of [committedJob, doneJob]) {
      const script = make()
      const { state } = script.job
      script.clock.advance(3_600_000)
      const expire: Command = { kind: 'expire', fence: script.fence }
      expect(askInVain(script, expire)).toBe('E_COMMITTED')
      expect(script.job.state).toBe(state)
    }
  })

  it('the job is SUCCEEDED when an execution is DONE after COMMITTED, and not before', () => {
    const script = startedJob()
    expect(askInVain(script, { kind: 'done', attempt: 1 })).toBe('E_STALE_FENCE')
    commit(script, 1)
    expect(script.job).toMatchObject({ state: 'RUNNING', outcome: null })
    expect(lastExecution(script).status).toBe('COMMITTED')
    const done = script.applyCommand({ kind: 'done', attempt: 1 })
    expect(stepsOf(done)).toEqual(['RUNNING → SUCCEEDED'])
    expect(script.job).toMatchObject({ state: 'SUCCEEDED', outcome: 'succeeded' })
    expect(lastExecution(script).status).toBe('DONE')
  })

  it('the state of a job is a function of its executions', () => {
    const derive = (script: JobScript) => stateOfExecutions(executionsOf(script.facts))
    for (const make of [submitted, leasedJob, startedJob, committedJob, doneJob]) {
      expect(derive(make())).toBe(make().job.state)
    }
    const failedJob = startedJob()
    failTerminally(failedJob)
    expect([failedJob.job.state, derive(failedJob)]).toEqual(['FAILED', 'FAILED'])
    const forced = submitted()
    forced.operate({ kind: 'force', to: 'FAILED' })
    expect(derive(forced), 'after a forced end').toBe(forced.job.state)
    fc.assert(
      fc.property(lives, ({ script: { facts } }) => {
        for (const [i, fact] of facts.entries()) {
          expect(stateOfExecutions(executionsOf(facts.slice(0, i + 1)))).toBe(fact.to)
        }
      }),
      RUNS,
    )
  })

  it('a job changes state only together with an execution', () => {
    const ends: Command[] = [{ kind: 'cancel' }, { kind: 'force', to: 'FAILED' }]
    for (const command of ends) {
      const fact = factOf(ask(submitted(), command))
      expect(fact.execution?.statuses, command.kind).toEqual(['LEASED', 'ABORTED'])
    }
    fc.assert(
      fc.property(lives, ({ script: { facts } }) => {
        for (const fact of facts) {
          if (hopsOf(fact).length === 0) continue
          expect(fact.execution?.statuses ?? [], `${fact.trigger}`).not.toEqual([])
        }
      }),
      RUNS,
    )
  })
})

describe('the holder of the lease', () => {
  it('only the holder of the lease moves an execution', () => {
    for (const make of [leasedJob, startedJob]) {
      const { claim } = make().fence
      const wrong = [
        { attempt: 1, claim: FOREIGN_CLAIM },
        { attempt: 2, claim },
        { attempt: 0, claim },
      ]
      for (const fence of wrong) {
        for (const command of holderCommands(fence)) {
          expect(askInVain(make(), command), command.kind).toBe('E_STALE_FENCE')
        }
        const expire: Command = { kind: 'expire', fence }
        const script = make()
        letLeaseExpire(script)
        expect(askInVain(script, expire)).toBe('E_STALE_FENCE')
      }
      expect(askInVain(make(), { kind: 'done', attempt: 2 })).toBe('E_STALE_FENCE')
    }
    for (const command of holderCommands({ attempt: 0, claim: FOREIGN_CLAIM })) {
      expect(askInVain(submitted(), command)).toBe('E_STALE_FENCE')
    }
  })

  it('an expired lease is never revived', () => {
    for (const make of [leasedJob, startedJob]) {
      for (const late of [0, 1, 86_400_000]) {
        const script = make()
        const { fence } = script
        letLeaseExpire(script)
        script.clock.advance(late)
        for (const command of holderCommands(fence)) {
          expect(askInVain(script, command), command.kind).toBe('E_STALE_FENCE')
        }
        expect(inVain(script, () => script.claim())).toBe('E_STALE_FENCE')
      }
    }
    const inTime = startedJob()
    inTime.clock.advance(29_999)
    expect(factOf(ask(inTime, { kind: 'commit', fence: inTime.fence })).to).toBe('SUCCEEDED')
  })
})
