// P2 for runs: what `checkRun` reports of a log, and that it reports nothing of a legal one.
import fc from 'fast-check'
import { checkRun, decideRun } from 'pawl/rules'
import { documentationRun, type RunEvent } from 'pawl/runs'
import { RunScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { anyHistory, play } from '../core/run-arbitraries.ts'
import { runIn } from '../core/run-support.ts'

const seqsOf = (events: readonly RunEvent[]) =>
  checkRun(documentationRun, events).map(({ promise, seq }) => `${promise} at ${seq}`)

/** The log with another event in the place of one of its own. */
function damaged(events: readonly RunEvent[], seq: number, change: object): RunEvent[] {
  return events.map((event) => (event.seq === seq ? ({ ...event, ...change } as RunEvent) : event))
}

describe('every change of state of a run is an edge or a rewind', () => {
  it('in any random history', () => {
    fc.assert(
      fc.property(anyHistory, (steps) => {
        expect(seqsOf(play(steps).events)).toEqual([])
      }),
      { numRuns: 200 },
    )
  })

  it('and a log that begins elsewhere is reported', () => {
    const { events } = runIn('INGESTED')
    const data = { ...events[0]?.data, state: 'INGESTED' }
    expect(seqsOf(damaged(events, 1, { data }))).toEqual(['P2 at 1', 'P2 at 2'])
  })

  it('and a leap is reported', () => {
    const { events } = runIn('INGESTED')
    const data = { from_state: 'CLONED_INPUTS', to_state: 'DONE' }
    expect(seqsOf(damaged(events, 3, { data }))).toEqual(['P2 at 3'])
  })

  it('and a rewind is reported where its target was not visited', () => {
    const script = runIn('DRAFTING')
    script.applyCommand({ kind: 'rewind', reason: 'resume' })
    const { events } = script
    expect(seqsOf(events)).toEqual([])
    const last = events.length
    const data = { from_state: 'DRAFTING', to_state: 'READY_FOR_PR', reason: 'resume' }
    expect(seqsOf(damaged(events, last, { data }))).toEqual([`P2 at ${last}`])
  })
})

describe('a run is decided by its own machine alone', () => {
  it('and refuses another, or another version of it', () => {
    for (const own of [{ name: 'other' }, { version: 2 }]) {
      const machine = { ...documentationRun.machine, ...own }
      const elsewhere = new RunScript({ ...documentationRun, machine })
      elsewhere.applyCommand({ kind: 'create' })
      const move = { kind: 'move', to: 'CLONED_INPUTS' } as const
      const answer = decideRun(documentationRun, elsewhere.run, move)
      expect(answer).toMatchObject({ kind: 'rejected', error: { code: 'E_LIFECYCLE_UNKNOWN' } })
    }
  })
})
