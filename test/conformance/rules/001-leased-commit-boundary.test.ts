/** The state-model requirements (R1): the commit boundary, duplicate delivery, and the records. */
import fc from 'fast-check'
import { type Command, checkP3, executionsOf, type Fact, leased, viewOf } from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import {
  answerOf,
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

const commitsOf = (facts: readonly Fact[]) =>
  facts.filter(({ execution }) => execution?.statuses.includes('COMMITTED')).length

describe('the commit boundary', () => {
  it('at most one execution of a job reaches COMMITTED', () => {
    fc.assert(
      fc.property(lives, ({ script: { facts } }) => {
        expect(commitsOf(facts)).toBeLessThanOrEqual(1)
        expect(checkP3(leased, facts)).toEqual([])
        const states = executionsOf(facts).map(({ status }) => status)
        const effective = states.filter((status) => status === 'COMMITTED' || status === 'DONE')
        expect(effective.length).toBeLessThanOrEqual(1)
      }),
      RUNS,
    )
    const { facts } = doneJob()
    const last = facts.at(-1)
    if (last === undefined) throw new Error('the job has no facts')
    const execution = { attempt: 2, statuses: ['LEASED', 'IN_PROGRESS', 'COMMITTED'] } as const
    const second: Fact = { ...last, seq: last.seq + 1, trigger: 'commit', execution }
    expect(checkP3(leased, facts)).toEqual([])
    expect(checkP3(leased, [...facts, second])).toMatchObject([{ promise: 'P3', seq: second.seq }])
  })

  it('a later attempt that meets a commit is refused and changes nothing', () => {
    for (const make of [committedJob, doneJob]) {
      const { fence: own, clock } = make()
      expect(inVain(...claiming(make()))).toBe('E_COMMITTED')
      for (const command of holderCommands({ attempt: 2, claim: FOREIGN_CLAIM })) {
        expect(askInVain(make(), command), command.kind).toBe('E_STALE_FENCE')
      }
      for (const command of holderCommands(own).filter(({ kind }) => kind !== 'commit')) {
        expect(askInVain(make(), command), command.kind).toBe('E_COMMITTED')
      }
      const foreign = { attempt: 1, claim: FOREIGN_CLAIM }
      expect(askInVain(make(), { kind: 'commit', fence: foreign })).toBe('E_STALE_FENCE')
      expect(askInVain(make(), { kind: 'expire', fence: foreign })).toBe('E_STALE_FENCE')
      expect(askInVain(make(), { kind: 'expire', fence: own })).toBe('E_COMMITTED')
      expect(askInVain(make(), { kind: 'reschedule', runAt: clock.now() })).toBe('E_COMMITTED')
    }
  })

  it('a repeated commit with the same fence returns the stored result', () => {
    for (const effects of [0, 1]) {
      const script = startedJob()
      const again: Command = { kind: 'commit', fence: script.fence, effects }
      expect(answerOf(script.applyCommand(again))).toBe('fact')
      // The result is stored beside the one COMMITTED fact; 'same' is the word to read it there.
      expect(askInVain(script, again)).toBe('same')
      script.clock.advance(3_600_000)
      expect(askInVain(script, again)).toBe('same')
      expect(askInVain(script, { ...again, effects: 5 })).toBe('same')
      expect(commitsOf(script.facts)).toBe(1)
      expect(script.facts.at(-1)?.effects).toBe(effects)
    }
  })

  it('after COMMITTED a job moves only to SUCCEEDED', () => {
    const { fence } = committedJob()
    const late: Command[] = [
      ...holderCommands(fence).filter(({ kind }) => kind !== 'commit'),
      { kind: 'cancel' },
      { kind: 'suspend', fence, runAt: 1 },
      { kind: 'park' },
      { kind: 'discard' },
      ...['PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED'].map(
        (to) => ({ kind: 'force', to }) as const,
      ),
      { kind: 'repair', to: 'FAILED' },
    ]
    for (const command of late) {
      expect(askInVain(committedJob(), command), command.kind).toBe('E_COMMITTED')
    }
    const done = committedJob().applyCommand({ kind: 'done', attempt: 1 })
    expect(stepsOf(done)).toEqual(['RUNNING → SUCCEEDED'])
    fc.assert(
      fc.property(lives, ({ told }) => {
        for (const { before, after } of told) {
          if (before?.execution?.status !== 'COMMITTED') continue
          expect(['RUNNING', 'SUCCEEDED']).toContain(after?.state)
        }
      }),
      RUNS,
    )
  })

  it('a crash after COMMITTED is finished to DONE without a second commit', () => {
    const script = committedJob()
    script.clock.advance(3_600_000)
    const fact = factOf(script.applyCommand({ kind: 'done', attempt: 1 }, { actor: 'engine' }))
    expect(fact).toMatchObject({ from: 'RUNNING', to: 'SUCCEEDED', actor: 'engine' })
    expect(fact.execution).toEqual({ attempt: 1, statuses: ['DONE'] })
    expect(script.job).toMatchObject({ state: 'SUCCEEDED', attempt: 1 })
    expect(commitsOf(script.facts)).toBe(1)
    expect(executionsOf(script.facts)).toHaveLength(1)
  })

  it('the duplicate retry of FM_001 commits once', () => {
    for (const order of ['A first', 'B first'] as const) {
      const script = submitted()
      script.claim({ worker: 'A' })
      const a = script.fence
      crash(script)
      letDue(script)
      script.claim({ worker: 'B' })
      const b = script.fence
      const commitOf = (fence: typeof a): Command => ({ kind: 'commit', fence, effects: 1 })
      if (order === 'A first') expect(askInVain(script, commitOf(a))).toBe('E_STALE_FENCE')
      expect(answerOf(script.applyCommand(commitOf(b)))).toBe('fact')
      expect(askInVain(script, commitOf(a))).toBe('E_STALE_FENCE')
      script.applyCommand({ kind: 'done', attempt: 2 })
      expect(askInVain(script, commitOf(a))).toBe('E_STALE_FENCE')
      expect(commitsOf(script.facts)).toBe(1)
      expect(
        executionsOf(script.facts).map(({ leaseOwner, status }) => [leaseOwner, status]),
      ).toEqual([
        ['A', 'ABORTED'],
        ['B', 'DONE'],
      ])
    }
  })
})

/** A script and an attempt to claim it, as `inVain` takes them. */
function claiming(script: JobScript): [JobScript, () => ReturnType<JobScript['claim']>] {
  return [script, () => script.claim({ worker: 'worker-2' })]
}

type Line = [waitMs: number, make: (script: JobScript) => Command]

/** Claims with an id that is known beforehand, so that the same claim can be delivered twice. */
function claim(id: number, start: boolean): (script: JobScript) => Command {
  const uuid = `00000000-0000-7000-8000-00000000a00${id}`
  return ({ clock }) => ({
    kind: 'claim',
    claim: uuid,
    worker: 'worker-1',
    leaseUntil: clock.now() + 30_000,
    start,
  })
}

const fenceOf = (attempt: number) => ({
  attempt,
  claim: `00000000-0000-7000-8000-00000000a00${attempt}`,
})
const broken = { class: 'retryable', kind: 'error', message: 'it broke' } as const
const hopeless = { class: 'terminal', kind: 'validation', message: 'no such page' } as const

const HAPPY_PATH: readonly Line[] = [
  [0, () => ({ kind: 'prioritise', priority: 2 })],
  [0, claim(1, false)],
  [5, () => ({ kind: 'start', fence: fenceOf(1) })],
  [5, () => ({ kind: 'commit', fence: fenceOf(1), effects: 1 })],
  [5, () => ({ kind: 'done', attempt: 1 })],
]
const FAILURE_PATH: readonly Line[] = [
  [0, claim(1, true)],
  [5, () => ({ kind: 'fail', fence: fenceOf(1), failure: broken })],
  [5000, claim(2, true)],
  [5, () => ({ kind: 'release', fence: fenceOf(2) })],
  [0, claim(3, true)],
  [30_000, () => ({ kind: 'expire', fence: fenceOf(3) })],
  [5000, claim(4, false)],
  [30_000, () => ({ kind: 'expire', fence: fenceOf(4) })],
  [0, claim(5, true)],
  [5, () => ({ kind: 'fail', fence: fenceOf(5), failure: hopeless })],
  [0, () => ({ kind: 'cancel' })],
]

function deliver(path: readonly Line[], times: number): JobScript {
  // The same random number each time: a repeated command must not change the delay of another.
  const script = new JobScript(leased, { random: { next: () => 0.5 } })
  script.create()
  for (const [waitMs, make] of path) {
    script.clock.advance(waitMs)
    const command = make(script)
    for (let i = 0; i < times; i++) script.applyCommand(command)
  }
  return script
}

describe('duplicate delivery', () => {
  it('a command that is delivered twice changes nothing the second time', () => {
    for (const path of [HAPPY_PATH, FAILURE_PATH]) {
      const once = deliver(path, 1)
      // Each line of the path but the cancel of an ended job is a fact of its own.
      expect(once.facts.length).toBeGreaterThanOrEqual(path.length)
      for (const times of [2, 3]) {
        const often = deliver(path, times)
        expect(often.facts).toEqual(once.facts)
        expect(often.job).toEqual(once.job)
      }
    }
    expect(deliver(HAPPY_PATH, 2).job.state).toBe('SUCCEEDED')
    expect(deliver(FAILURE_PATH, 2).job).toMatchObject({ state: 'FAILED', attempt: 5 })
    expect(deliver(FAILURE_PATH, 2).job).toMatchObject({ failures: 1, crashes: 1, releases: 2 })
  })

  it('a remembered step is known to the next attempt', () => {
    const script = startedJob()
    const step: Command = { kind: 'step', fence: script.fence, name: 'fetch', n: 1 }
    expect(factOf(script.applyCommand(step)).step).toEqual({ name: 'fetch', n: 1 })
    crash(script)
    letDue(script)
    script.claim({ worker: 'worker-2' })
    const remembered = script.facts.flatMap(({ step: own }) => own ?? [])
    expect(remembered).toEqual([{ name: 'fetch', n: 1 }])
    expect(askInVain(script, step)).toBe('E_STALE_FENCE')

    const mine: Command = { kind: 'step', fence: script.fence, name: 'render', n: 1 }
    expect(factOf(script.applyCommand(mine)).step).toEqual({ name: 'render', n: 1 })
    expect(factOf(script.applyCommand({ ...mine, n: 2 })).step).toEqual({ name: 'render', n: 2 })
    // A second value for the same step has nowhere to go: the first one is what others may know.
    expect(askInVain(script, mine)).toBe('same')
  })

  it('two payloads give the same facts', () => {
    const payloads = [{ page: 'one' }, { page: 'two', secret: ['much', 'longer'] }]
    const ledgers = payloads.map((payload, i) => {
      const script = new JobScript(leased)
      const jobId = `00000000-0000-7000-8000-00000000b00${i}`
      // Whatever else travels with a command, the decider must not let it into a fact.
      const create = { kind: 'create', jobId, type: 'example', queue: 'default', payload } as const
      script.applyCommand(create)
      script.claim()
      const failure = { ...broken, payload }
      const fail = { kind: 'fail', fence: script.fence, failure, payload } as const
      script.applyCommand(fail)
      letDue(script)
      script.claim()
      const last = { kind: 'commit', fence: script.fence, result: payload, payload } as const
      script.applyCommand(last)
      expect(script.job.state).toBe('SUCCEEDED')
      return script.facts.map((fact) => ({ ...fact, jobId: 'the job' }))
    })
    expect(ledgers[0]).toEqual(ledgers[1])
    expect(JSON.stringify(ledgers)).not.toMatch(/payload|secret|page/)
  })
})

describe('the records of R1', () => {
  it('the view of a job has the documented fields', () => {
    const script = submitted()
    const createdAt = script.clock.now()
    const acts: ((own: JobScript) => unknown)[] = [
      (own) => own.claim({ start: false }),
      (own) => own.applyCommand({ kind: 'start', fence: own.fence }),
      failRetryably,
      (own) => own.claim(),
      commit,
    ]
    for (const act of acts) {
      letDue(script)
      script.clock.advance(3)
      act(script)
      expect(viewOf(leased, script.job)).toEqual({
        job_id: script.job.id,
        state: script.job.state,
        attempt: script.job.attempt,
        created_at: createdAt,
        updated_at: script.facts.at(-1)?.at,
      })
      expect(script.facts.at(-1)?.at).toBe(script.clock.now())
    }
    expect(viewOf(leased, script.job)).toMatchObject({ state: 'SUCCEEDED', attempt: 2 })
  })

  it('the record of an execution has the documented fields', () => {
    const script = leasedJob()
    const claimedAt = script.clock.now()
    const record = {
      execId: `${script.job.id}/1`,
      jobId: script.job.id,
      attempt: 1,
      leaseOwner: 'worker-1',
      leaseExpiresAt: claimedAt + 30_000,
    }
    const unknown = { startedAt: null, finishedAt: null, error: null, timing: null }
    const open = { ...unknown, thrown: null, abort: null, final: false }
    expect(lastExecution(script)).toEqual({ ...record, ...open, status: 'LEASED' })
    script.clock.advance(10)
    script.applyCommand({ kind: 'start', fence: script.fence })
    const started = { ...record, ...open, startedAt: claimedAt + 10 }
    expect(lastExecution(script)).toEqual({ ...started, status: 'IN_PROGRESS' })
    script.clock.advance(10)
    commit(script, 1)
    const committed = { ...started, timing: { queueMs: 10, durationMs: 10 } }
    expect(lastExecution(script)).toEqual({ ...committed, status: 'COMMITTED' })
    script.clock.advance(10)
    script.applyCommand({ kind: 'done', attempt: 1 })
    const finishedAt = claimedAt + 30
    expect(lastExecution(script)).toEqual({ ...committed, status: 'DONE', finishedAt })

    const failedJob = startedJob()
    failedJob.clock.advance(10)
    failTerminally(failedJob)
    expect(lastExecution(failedJob)).toMatchObject({
      status: 'ABORTED',
      startedAt: claimedAt,
      finishedAt: claimedAt + 10,
      error: { message: 'no such page', kind: 'validation', type: 'TERMINAL' },
    })
  })

  it('every attempt stays in the record with its outcome', () => {
    const script = startedJob()
    const times = [script.clock.now()]
    const next = () => {
      letDue(script)
      times.push(script.clock.now())
      script.claim({ worker: `worker-${times.length}` })
    }
    failRetryably(script)
    next()
    crash(script)
    next()
    commit(script)
    const executions = executionsOf(script.facts)
    expect(executions.map(({ attempt, status, abort }) => [attempt, status, abort])).toEqual([
      [1, 'ABORTED', 'error'],
      [2, 'ABORTED', 'lease_expired'],
      [3, 'DONE', null],
    ])
    expect(executions.map(({ leaseOwner }) => leaseOwner)).toEqual([
      'worker-1',
      'worker-2',
      'worker-3',
    ])
    expect(executions.map(({ startedAt }) => startedAt)).toEqual(times)
    expect(executions.map(({ finishedAt }) => finishedAt)).toEqual([
      times[0],
      (times[1] ?? 0) + 30_000,
      times[2],
    ])
    expect(executions.map(({ error }) => error?.message ?? null)).toEqual([
      'no answer',
      'The lease expired',
      null,
    ])
  })
})
