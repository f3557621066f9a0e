// Replay never guesses: an event that does not follow from those before it stops it, and is named.
import fc from 'fast-check'
import { foldRun, LedgerBroken } from 'pawl/rules'
import type { RunEvent, RunFact } from 'pawl/runs'
import { describe, expect, it } from 'vitest'
import { anyHistory, play } from './run-arbitraries.ts'
import { longLife, runIn } from './run-support.ts'

/** What replay of these events is stopped by: the seq and the reason. */
function faultOf(events: readonly RunEvent[]): { seq: unknown; why: unknown } {
  try {
    foldRun(events)
  } catch (error) {
    if (!(error instanceof LedgerBroken)) throw error
    expect(error.details.subject).toMatch(/^run run-/)
    return { seq: error.details.seq, why: error.details.why }
  }
  throw new Error('the damaged log was accepted')
}

/** A whole log up to DRAFTING, and one more event after it. */
function logWith(fact: RunFact, more: Partial<RunEvent> = {}): RunEvent[] {
  const { events } = runIn('DRAFTING')
  const last = events.at(-1) as RunEvent
  const event = { ...last, seq: last.seq + 1, event_id: 'next', ...fact, ...more }
  return [...events, event as RunEvent]
}

const commit: RunFact = { type: 'COMMIT_LINKED', data: { sha: 'a'.repeat(40) } }
const NEXT = 7

describe('a log', () => {
  it('is accepted when it is whole', () => {
    expect(foldRun(logWith(commit))?.last_seq).toBe(NEXT)
    expect(foldRun([])).toBeNull()
  })

  it('is refused when its beginning is missing', () => {
    const { events } = longLife()
    expect(faultOf(events.slice(1))).toEqual({ seq: 2, why: 'the first event is missing' })
    const late = events.slice(0, 1).map((event) => ({ ...event, seq: 2 }))
    expect(faultOf(late)).toEqual({ seq: 2, why: 'the first event is missing' })
  })

  it('is refused when something happened before the run was created', () => {
    const early = logWith(commit, { seq: 1 }).slice(-1)
    expect(faultOf(early)).toEqual({ seq: 1, why: 'the first event is not RUN_CREATED' })
  })

  it('is refused when the run is created a second time', () => {
    const data = { state: 'CREATED', machine: 'run', machine_version: 1, max_fix_attempts: 9 }
    const fault = faultOf(logWith({ type: 'RUN_CREATED', data }))
    expect(fault).toEqual({ seq: NEXT, why: 'the run is created a second time' })
  })

  it('is refused when an event belongs to another run', () => {
    const fault = faultOf(logWith(commit, { run_id: 'run-2' }))
    expect(fault).toEqual({ seq: NEXT, why: 'it does not belong to run run-1' })
  })

  it('is refused when a number is left out, comes twice or goes back', () => {
    for (const seq of [NEXT + 1, NEXT - 1, 1, 0, -1, Number.NaN, NEXT + 0.5]) {
      const why = `it does not follow ${NEXT - 1}`
      expect(faultOf(logWith(commit, { seq }))).toEqual({ seq, why })
    }
  })
})

describe('the content of a log', () => {
  it('does not pass when a change of state does not start where the run is', () => {
    const data = { from_state: 'LINKING', to_state: 'VALIDATING' }
    const why = 'it starts in LINKING, not in DRAFTING'
    expect(faultOf(logWith({ type: 'RUN_STATE_CHANGED', data }))).toEqual({ seq: NEXT, why })
    const rewind: RunFact = {
      type: 'RESUME_REWIND',
      data: { from_state: 'LINKING', to_state: 'PLAN_READY', reason: 'resume' },
    }
    expect(faultOf(logWith(rewind))).toEqual({ seq: NEXT, why })
  })

  it('does not pass when it rewinds to a state that was never visited', () => {
    for (const to_state of ['READY_FOR_PR', 'NOWHERE']) {
      const data = { from_state: 'DRAFTING', to_state, reason: 'resume' } as const
      expect(faultOf(logWith({ type: 'RESUME_REWIND', data })).seq).toBe(NEXT)
    }
  })

  it('does not pass when an event speaks of something that was never made', () => {
    const strays: RunFact[] = [
      { type: 'ISSUE_RESOLVED', data: { issue: 'x' } },
      { type: 'WORK_ITEM_FINISHED', data: { key: 'x', inputs: {} } },
      { type: 'WORK_ITEM_FAILED', data: { key: 'x', error: 'e' } },
      { type: 'ARTIFACT_STALE', data: { name: 'x', because: 'y' } },
      { type: 'ARTIFACT_REVALIDATED', data: { name: 'x' } },
      { type: 'ISSUE_RESOLVED', data: { issue: 'toString' } },
      { type: 'WORK_ITEM_FINISHED', data: { key: '__proto__', inputs: {} } },
      { type: 'ARTIFACT_STALE', data: { name: 'constructor', because: 'y' } },
    ]
    for (const fact of strays) {
      const why = `${fact.type} names something that does not exist`
      expect(faultOf(logWith(fact))).toEqual({ seq: NEXT, why })
    }
  })

  it('may end a run and tell why: both events belong together', () => {
    const { events } = runIn('FAILED')
    expect(foldRun(events)).toMatchObject({ run_state: 'FAILED', ended_because: 'disk full' })
  })
})

describe('any log', () => {
  it('is refused at the first event after one that was left out', () => {
    fc.assert(
      fc.property(anyHistory, fc.nat(), (steps, pick) => {
        const { events } = play(steps)
        if (events.length < 2) return
        const gap = pick % (events.length - 1)
        const damaged = events.filter((_, i) => i !== gap)
        expect(faultOf(damaged).seq).toBe(gap + 2)
      }),
    )
  })

  it('is refused at an event that was written twice, or changed places with the next', () => {
    fc.assert(
      fc.property(anyHistory, fc.nat(), (steps, pick) => {
        const { events } = play(steps)
        const at = pick % events.length
        const twice = [...events.slice(0, at + 1), ...events.slice(at)]
        expect(faultOf(twice).seq).toBe(at + 1)
        if (at + 1 === events.length) return
        const [one, next] = events.slice(at, at + 2) as [RunEvent, RunEvent]
        const swapped = [...events.slice(0, at), next, one, ...events.slice(at + 2)]
        expect(faultOf(swapped).seq).toBe(at + 2)
      }),
    )
  })

  it('tells nothing of what was torn off its end: each beginning of a log is a log', () => {
    const { events } = longLife()
    for (const length of events.keys()) {
      expect(foldRun(events.slice(0, length + 1))?.last_seq).toBe(length + 1)
    }
  })
})
