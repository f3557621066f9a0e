// The fix loop: its guards, and that a run never has more fix attempts than it was created with.
import fc from 'fast-check'
import { evolveRun } from 'pawl/rules'
import type { RunEvent } from 'pawl/runs'
import type { RunScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { anyMoves, play } from './run-arbitraries.ts'
import {
  answerOf,
  errorOf,
  factsOf,
  newRun,
  runIn,
  start,
  walkTo,
  work,
  write,
} from './run-support.ts'

const resume = { kind: 'rewind', reason: 'resume' } as const
const record = (ok: boolean) => ({ kind: 'record-validation', ok }) as const

/** A run in VALIDATING in which nothing was validated yet. */
function unvalidated(maxFixAttempts?: number) {
  const script = walkTo(newRun(maxFixAttempts), 'LINKING', true)
  script.walk('VALIDATING')
  return script
}

describe('the guards of the fix loop', () => {
  it('say what they miss', () => {
    const script = unvalidated()
    for (const to of ['READY_FOR_PR', 'FIXING']) {
      const message = `The guard of VALIDATING → ${to} does not hold: no validation was recorded`
      expect(errorOf(script.walk(to)).message).toBe(message)
    }
    script.applyCommand(record(false))
    const other = 'does not hold: the last validation had the other result'
    expect(errorOf(script.walk('READY_FOR_PR')).message).toContain(`READY_FOR_PR ${other}`)
    script.applyCommand(record(true))
    expect(errorOf(script.walk('FIXING')).message).toContain(`FIXING ${other}`)
  })

  it('go by the last validation of this visit and by no other', () => {
    const script = unvalidated()
    for (const ok of [true, false, true]) script.applyCommand(record(ok))
    expect(answerOf(script.walk('FIXING'))).toBe('E_GUARD_REFUSED')
    script.applyCommand(record(false))
    script.walk('FIXING')
    expect(script.run.validation?.ok).toBe(false)
    script.walk('VALIDATING')
    expect(script.run.validation).toBeNull()
    for (const to of ['FIXING', 'READY_FOR_PR']) {
      expect(answerOf(script.walk(to))).toBe('E_GUARD_REFUSED')
    }
  })

  it('do not fail a run that has no fix attempts left before its validation has failed', () => {
    const script = unvalidated(0)
    expect(answerOf(script.walk('FIXING'))).toBe('E_GUARD_REFUSED')
    script.applyCommand(record(true))
    expect(answerOf(script.walk('FIXING'))).toBe('E_GUARD_REFUSED')
    expect(script.run.run_state).toBe('VALIDATING')
    expect(answerOf(script.walk('READY_FOR_PR'))).toBe('facts')
  })

  it('leave failing and cancelling open at all times', () => {
    expect(unvalidated().walk('FAILED').kind).toBe('facts')
    expect(unvalidated().walk('CANCELLED').kind).toBe('facts')
    expect(runIn('FIXING').walk('FAILED').kind).toBe('facts')
  })
})

describe('fix attempts', () => {
  it('are used up to the last one, for any number of them', () => {
    for (const max of [0, 1, 2, 3, 10]) {
      const script = newRun(max)
      walkTo(script, 'VALIDATING', false)
      let entered = 0
      while (script.run.run_state === 'VALIDATING') {
        script.walk('FIXING')
        if ((script.run.run_state as string) !== 'FIXING') break
        entered++
        script.walk('VALIDATING')
        script.applyCommand(record(false))
      }
      expect([max, entered]).toEqual([max, max])
      expect(script.run.ended_because).toBe('max_fix_attempts exceeded')
    }
  })

  it('are not spent by entering FIXING: a crash before its work ran costs nothing', () => {
    const script = newRun(1)
    for (let crash = 0; crash < 10; crash++) {
      walkTo(script, 'VALIDATING', false).walk('FIXING')
      start(script, 'fix')
      expect(script.run).toMatchObject({ run_state: 'FIXING', fix_attempts: 0, fix_pending: true })
      script.applyCommand(resume)
      expect(Object.keys(script.run)).not.toContain('fix_pending')
    }
    walkTo(script, 'VALIDATING', false).walk('FIXING', 'VALIDATING')
    expect(script.run).toMatchObject({ run_state: 'VALIDATING', fix_attempts: 1 })
  })

  it('count once, with the first work that ran or with the way out', () => {
    const works: readonly ((script: RunScript) => unknown)[] = [
      (script) => write(script, 'page', 1),
      (script) => work(script, 'fix', [], { page: 1 }),
      (script) => {
        start(script, 'fix')
        script.applyCommand({ kind: 'fail-item', key: 'fix', error: 'no' })
      },
      (script) => script.applyCommand({ kind: 'count-fix' }),
      () => {},
    ]
    for (const does of works) {
      const script = runIn('FIXING')
      does(script)
      write(script, 'more', 2)
      script.walk('VALIDATING')
      const counted = script.events.filter(({ type }) => type === 'FIX_ATTEMPTED')
      expect(counted.map(({ data }) => data)).toEqual([{ attempt: 1 }])
      expect(script.run).toMatchObject({ run_state: 'VALIDATING', fix_attempts: 1 })
    }
  })

  it('count on entry in older logs, whose events say so', () => {
    const script = runIn('VALIDATING')
    const data = { from_state: 'VALIDATING', to_state: 'FIXING', fixing: true }
    const seq = script.run.last_seq + 1
    const entered = { ...script.events.at(-1), seq, type: 'RUN_STATE_CHANGED', data } as RunEvent
    expect(evolveRun(script.run, entered)).toMatchObject({ run_state: 'FIXING', fix_attempts: 1 })
  })

  it('are not spent by the report of an item that had ended before', () => {
    const script = unvalidated()
    start(script, 'page')
    script.applyCommand({ kind: 'finish-item', key: 'page' })
    script.applyCommand(record(false))
    script.walk('FIXING')
    expect(script.applyCommand({ kind: 'finish-item', key: 'page' })).toEqual({ kind: 'same' })
    expect(script.run).toMatchObject({ fix_attempts: 0, fix_pending: true })
    expect(factsOf(script.applyCommand({ kind: 'count-fix' }))).toMatchObject([
      { type: 'FIX_ATTEMPTED' },
    ])
    expect(script.run.fix_attempts).toBe(1)
  })

  it('are not won back by crashing after the work of a fix ran, time after time', () => {
    const script = newRun(3)
    const counts: number[] = []
    for (let crash = 0; crash < 4; crash++) {
      walkTo(script, 'VALIDATING', false).walk('FIXING')
      script.applyCommand({ kind: 'count-fix' })
      counts.push(script.run.fix_attempts)
      script.applyCommand(resume)
    }
    expect(counts).toEqual([1, 2, 3, 3])
    expect(script.run.run_state).toBe('FAILED')
  })

  it('start again when an input changed, by a fact that says which and how many', () => {
    const script = runIn('FIXING', 1)
    script.walk('VALIDATING')
    const reset = { kind: 'reset-fixes', because: 'pages/a.md' } as const
    expect(factsOf(script.applyCommand(reset))).toEqual([
      { type: 'FIX_ATTEMPTS_RESET', data: { spent: 1, because: 'pages/a.md' } },
    ])
    expect(script.run.fix_attempts).toBe(0)
    expect(script.applyCommand(reset).kind).toBe('same')
    script.applyCommand(record(false))
    script.walk('FIXING')
    expect(script.run.run_state).toBe('FIXING')
  })

  it('are counted by nothing outside of a fix, and a log that says so is damaged', () => {
    expect(runIn('VALIDATING').applyCommand({ kind: 'count-fix' }).kind).toBe('same')
    const script = runIn('VALIDATING')
    const next = { ...(script.events.at(-1) as RunEvent), seq: script.run.last_seq + 1 }
    const counted = { ...next, type: 'FIX_ATTEMPTED', data: { attempt: 1 } } as RunEvent
    expect(() => evolveRun(script.run, counted)).toThrow('it counts a fix attempt that was')
    const data = { spent: 1, because: 'a' }
    const reset = { ...next, type: 'FIX_ATTEMPTS_RESET', data } as RunEvent
    expect(() => evolveRun(script.run, reset)).toThrow('it resets 1 fix attempts, but there were 0')
    const fixing = runIn('FIXING')
    const second = { ...counted, seq: fixing.run.last_seq + 1, data: { attempt: 2 } } as RunEvent
    expect(() => evolveRun(fixing.run, second)).toThrow('it counts fix attempt 2 after 0')
  })

  it('are not won back by a rewind because something is stale, nor by passing', () => {
    const script = runIn('FIXING', 1)
    script.walk('VALIDATING')
    script.applyCommand(record(true))
    script.walk('READY_FOR_PR')
    script.applyCommand({ kind: 'rewind', reason: 'stale', to: 'PLAN_READY' })
    expect(script.run).toMatchObject({ run_state: 'PLAN_READY', fix_attempts: 1 })
    walkTo(script, 'VALIDATING', false).walk('FIXING')
    expect(script.run.run_state).toBe('FAILED')
  })

  it('bound how often the work of a fix runs, whatever is moved, validated and rewound', () => {
    let exhausted = 0
    fc.assert(
      fc.property(anyMoves, fc.nat(4), (steps, max) => {
        const { events, run } = play(steps, max)
        const entries = events.filter(({ type }) => type === 'FIX_ATTEMPTED')
        expect(entries.length).toBeLessThanOrEqual(max)
        expect(run.fix_attempts).toBe(entries.length)
        if (run.ended_because === 'max_fix_attempts exceeded') {
          exhausted++
          expect(entries).toHaveLength(max)
        }
      }),
      { numRuns: 400 },
    )
    // Histories that never reach the bound would show nothing.
    expect(exhausted).toBeGreaterThan(0)
  })
})
