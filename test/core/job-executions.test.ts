// The attempts of a job, rebuilt from its facts.
import fc from 'fast-check'
import {
  type Execution,
  executionsOf,
  hardened,
  leased,
  standard,
  stateOfExecutions,
} from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { histories } from '../support/random-history.ts'
import { awaken, crash, EVERY_LIFECYCLE, FINAL, factOf, played } from './job-play.ts'

const START = Date.UTC(2026, 0, 1)
const ID = '00000000-0000-7000-8000-000000000001'

const opened: Execution = {
  execId: `${ID}/1`,
  jobId: ID,
  attempt: 1,
  leaseOwner: 'worker-1',
  leaseExpiresAt: START + 30_000,
  status: 'LEASED',
  startedAt: null,
  finishedAt: null,
  timing: null,
  error: null,
  thrown: null,
  abort: null,
  final: false,
}

describe('the record of an attempt', () => {
  it('begins with its lease and follows it to the end', () => {
    const script = played(standard, 'create', 'lease')
    const last = () => executionsOf(script.facts)
    expect(last()).toEqual([opened])
    script.clock.advance(5)
    script.applyCommand({ kind: 'start', fence: script.fence })
    const started = { ...opened, status: 'IN_PROGRESS', startedAt: START + 5 }
    expect(last()).toEqual([started])
    script.clock.advance(5)
    script.applyCommand({ kind: 'commit', fence: script.fence, effects: 1 })
    const committed = { ...started, timing: { queueMs: 5, durationMs: 5 } }
    expect(last()).toEqual([{ ...committed, status: 'COMMITTED' }])
    script.clock.advance(5)
    script.applyCommand({ kind: 'done', attempt: 1 })
    expect(last()).toEqual([{ ...committed, status: 'DONE', finishedAt: START + 15 }])
  })

  it('is started with its lease where the claim says so', () => {
    const script = played(standard, 'create', 'claim')
    expect(executionsOf(script.facts)).toEqual([
      { ...opened, status: 'IN_PROGRESS', startedAt: START },
    ])
  })

  it('ends with the reason and the error of its abort, final where the job ended', () => {
    const script = played(standard, 'create', 'claim')
    script.clock.advance(5)
    script.applyCommand({ kind: 'fail', fence: script.fence, failure: FINAL })
    expect(executionsOf(script.facts)).toEqual([
      {
        ...opened,
        status: 'ABORTED',
        startedAt: START,
        finishedAt: START + 5,
        timing: { queueMs: 0, durationMs: 5 },
        error: { message: 'never', kind: 'validation', type: 'TERMINAL' },
        abort: 'error',
        final: true,
      },
    ])
  })
})

describe('the record of an attempt that was aborted', () => {
  it('has no error where it was given back', () => {
    const script = played(standard, 'create', 'claim')
    script.applyCommand({ kind: 'release', fence: script.fence })
    expect(executionsOf(script.facts)).toMatchObject([{ abort: 'released', error: null }])
  })

  it('stays in the list in the order of the attempts', () => {
    const script = played(standard, 'create', 'claim')
    crash(script)
    awaken(script)
    script.claim({ worker: 'worker-2' })
    expect(executionsOf(script.facts)).toMatchObject([
      { execId: `${ID}/1`, leaseOwner: 'worker-1', status: 'ABORTED', final: false },
      { execId: `${ID}/2`, leaseOwner: 'worker-2', status: 'IN_PROGRESS', abort: null },
    ])
  })

  it('is untouched by facts that are none of its business', () => {
    const script = played(standard, 'create', 'claim')
    const before = executionsOf(script.facts)
    factOf(script.applyCommand({ kind: 'step', fence: script.fence, name: 'fetch', n: 1 }))
    factOf(script.applyCommand({ kind: 'prioritise', priority: 3 }))
    expect(executionsOf(script.facts)).toEqual(before)
    expect(executionsOf([])).toEqual([])
  })

  it('of an attempt of the engine says so, and that nothing was started', () => {
    for (const [lifecycle, final] of [
      [leased, true],
      [hardened, false],
    ] as const) {
      const script = played(lifecycle, 'create', 'cancel')
      expect(executionsOf(script.facts)).toEqual([
        {
          ...opened,
          leaseOwner: 'engine',
          leaseExpiresAt: START,
          status: 'ABORTED',
          finishedAt: START,
          timing: { queueMs: 0, durationMs: 0 },
          abort: 'cancelled',
          final,
        },
      ])
    }
  })
})

describe('the attempts of any history', () => {
  it('are numbered without a gap, and at most the last of them is open', () => {
    fc.assert(
      fc.property(histories({ lifecycles: EVERY_LIFECYCLE }), ({ script: { facts, job } }) => {
        const executions = executionsOf(facts)
        expect(executions.map(({ attempt }) => attempt)).toEqual(
          Array.from({ length: job.attempt }, (_, i) => i + 1),
        )
        const open = executions.filter(({ finishedAt }) => finishedAt === null)
        const live = job.execution !== null && job.execution.status !== 'DONE'
        expect(open.map(({ attempt }) => attempt)).toEqual(live ? [job.attempt] : [])
        for (const { status, finishedAt, abort } of executions) {
          expect(finishedAt !== null).toBe(status === 'DONE' || status === 'ABORTED')
          expect(abort !== null).toBe(status === 'ABORTED')
        }
      }),
      { numRuns: 300 },
    )
  })
})

describe('the state of a job of lifecycle leased', () => {
  const of = (...list: readonly [Execution['status'], final?: boolean][]) =>
    stateOfExecutions(list.map(([status, final = false]) => ({ status, final })))

  it('is a function of its attempts', () => {
    expect(of()).toBe('PENDING')
    expect(of(['LEASED'])).toBe('RUNNING')
    expect(of(['IN_PROGRESS'])).toBe('RUNNING')
    expect(of(['COMMITTED'])).toBe('RUNNING')
    expect(of(['DONE'])).toBe('SUCCEEDED')
    expect(of(['ABORTED'])).toBe('PENDING')
    expect(of(['ABORTED', true])).toBe('FAILED')
    expect(of(['ABORTED'], ['LEASED'])).toBe('RUNNING')
    expect(of(['ABORTED'], ['DONE'])).toBe('SUCCEEDED')
    expect(of(['ABORTED'], ['ABORTED', true])).toBe('FAILED')
  })

  it('is what the fold says after every fact of any history that nobody forced', () => {
    fc.assert(
      fc.property(histories({ lifecycles: [leased] }), ({ script, told }) => {
        // A forced or repaired move leaves the table, and with it the document.
        const forced = script.facts.findIndex(
          ({ trigger, from, to }) => (trigger === 'force' || trigger === 'repair') && from !== to,
        )
        const length = forced < 0 ? script.facts.length : forced
        const states = told.flatMap(({ answer, after }) =>
          answer.kind === 'fact' && after !== null ? [after.state] : [],
        )
        for (let n = 1; n <= length; n++) {
          expect(stateOfExecutions(executionsOf(script.facts.slice(0, n)))).toBe(states[n - 1])
        }
      }),
      { numRuns: 300 },
    )
  })
})
