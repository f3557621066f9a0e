// The run requirements (R4): replay of the event log, and what is and is not done again.
import fc from 'fast-check'
import { checkRun, encode, evolveRun, foldRun, LedgerBroken } from 'pawl/rules'
import { documentationRun, type Run, type RunEvent } from 'pawl/runs'
import { describe, expect, it } from 'vitest'
import { anyHistory, play, take } from '../../core/run-arbitraries.ts'
import {
  deepFreeze,
  factsOf,
  hash,
  longLife,
  newRun,
  runIn,
  snapshotOf,
  staleIn,
  start,
  throughText,
  work,
  write,
} from '../../core/run-support.ts'

const resume = { kind: 'rewind', reason: 'resume' } as const

describe('replay', () => {
  it('snapshot collections are ordered by key and never by completion', () => {
    const keys = ['d', 'b', '10', 'a', '9', 'é']
    const complete = (order: readonly string[]) => {
      const script = runIn('DRAFTING')
      for (const key of order) {
        work(script, key, [], { [`${key}.md`]: 1 })
        script.applyCommand({ kind: 'change-section', section: key, to: 'drafted' })
        script.applyCommand({
          kind: 'open-issue',
          issue: key,
          severity: 'warning',
          message: 'look',
        })
      }
      return snapshotOf(script.events)
    }
    const expected = complete(keys)
    const orders = fc.shuffledSubarray(keys, { minLength: keys.length })
    fc.assert(
      fc.property(orders, (order) => {
        expect(complete(order)).toBe(expected)
      }),
    )
    expect(expected).toMatch(/"section_states":{"10":.*"9":.*"a":.*"b":.*"d":.*"é":/)
  })

  it('the snapshot is the fold of the events and of nothing else', () => {
    fc.assert(
      fc.property(anyHistory, (steps) => {
        const script = newRun()
        for (const step of steps) {
          take(script, step)
          expect(foldRun(deepFreeze([...script.events]))).toEqual(script.run)
        }
        expect(snapshotOf(script.events)).toBe(snapshotOf(script.events))
      }),
    )
  })

  it('replay through JSON text gives the same bytes', () => {
    const turned = (event: RunEvent) =>
      Object.fromEntries(Object.entries(event).reverse()) as unknown as RunEvent
    fc.assert(
      fc.property(anyHistory, (steps) => {
        const { events, run } = play(steps)
        expect(snapshotOf(throughText(events))).toBe(encode(run))
        expect(snapshotOf(throughText(events.map(turned)))).toBe(encode(run))
      }),
    )
  })
})

describe('replay of a whole or a damaged log', () => {
  it('replay begins at RUN_CREATED', () => {
    const { events } = longLife()
    const [created, ...rest] = events
    expect(() => foldRun(rest)).toThrow(LedgerBroken)
    const renumbered = rest.map((event, i) => ({ ...event, seq: i + 1 }))
    expect(() => foldRun(renumbered)).toThrow(/seq 1: the first event is not RUN_CREATED/)
    const again = { ...created, seq: events.length + 1 } as RunEvent
    expect(() => foldRun([...events, again])).toThrow(/the run is created a second time/)
    expect(foldRun([])).toBeNull()
  })

  it('replay refuses a gap, a repeat and an illegal move', () => {
    const { events } = runIn('PLAN_READY')
    const broken = (damaged: readonly RunEvent[], seq: number) => {
      const named = expect.objectContaining({ seq })
      const error = { code: 'E_LEDGER_BROKEN', details: named }
      expect(() => foldRun(damaged)).toThrow(expect.objectContaining(error))
    }
    broken([...events.slice(0, 2), ...events.slice(3)], 4)
    broken([...events.slice(0, 3), ...events.slice(2)], 3)
    const leap = (from_state: string, to_state: string) =>
      ({ ...events[1], data: { from_state, to_state } }) as RunEvent
    broken([...events.slice(0, 1), leap('INGESTED', 'FACTS_READY')], 2)
    // The fold knows no machine; the promise P2 for runs is what tells an edge from a leap.
    const leapt = [...events.slice(0, 1), leap('CREATED', 'DONE')]
    expect(checkRun(documentationRun, leapt)).toMatchObject([{ promise: 'P2', seq: 2 }])
    expect(checkRun(documentationRun, events)).toEqual([])
  })

  it('replay restores the last state that the log reached', () => {
    const script = longLife()
    script.walk('PR_OPENED', 'DONE')
    const reached: string[] = []
    let run: Run | null = null
    for (const [i, event] of script.events.entries()) {
      const { type, data } = event
      const moved = type === 'RUN_STATE_CHANGED' || type === 'RESUME_REWIND'
      reached.push(moved ? data.to_state : (reached[i - 1] ?? 'CREATED'))
      run = evolveRun(run, event)
      expect([i, run.run_state]).toEqual([i, reached[i]])
      expect(foldRun(throughText(script.events.slice(0, i + 1)))).toEqual(run)
    }
    expect(reached.at(-1)).toBe('DONE')
  })
})

describe('finished work', () => {
  it('a changed artifact makes everything downstream stale and nothing else', () => {
    const script = runIn('DRAFTING')
    for (const source of ['input', 'other']) write(script, source, 1)
    work(script, 'plan', ['input'], { plan: 2 })
    work(script, 'draft', ['plan'], { draft: 3 })
    work(script, 'glossary', ['other'], { glossary: 4 })
    const stale = factsOf(write(script, 'input', 9)).slice(1)
    expect(stale).toEqual([
      { type: 'ARTIFACT_STALE', data: { name: 'draft', because: 'input' } },
      { type: 'ARTIFACT_STALE', data: { name: 'plan', because: 'input' } },
    ])
    expect(staleIn(script.run)).toEqual(['draft', 'plan'])
    expect(factsOf(write(script, 'input', 9))).toHaveLength(1)
  })

  it('an item whose inputs turn out the same is revalidated instead of redone', () => {
    const withStaleDraft = () => {
      const script = runIn('DRAFTING')
      write(script, 'input', 1)
      work(script, 'plan', ['input'], { plan: 2 })
      work(script, 'draft', ['plan'], { draft: 3 })
      write(script, 'input', 9)
      // The plan comes out as it was, hence nothing that the draft has read is different.
      work(script, 'plan', ['input'], { plan: 2 })
      expect(staleIn(script.run)).toEqual(['draft'])
      return script
    }
    const script = withStaleDraft()
    expect(factsOf(script.applyCommand({ kind: 'revalidate-artifact', name: 'draft' }))).toEqual([
      { type: 'ARTIFACT_REVALIDATED', data: { name: 'draft' } },
    ])
    expect(staleIn(script.run)).toEqual([])
    expect(start(script, 'draft', { plan: hash(2) })).toEqual({ kind: 'same' })
    const strict = withStaleDraft()
    work(strict, 'draft', ['plan'], { draft: 3 })
    expect(strict.run.work_items.draft?.attempts).toBe(2)
    expect(staleIn(strict.run)).toEqual([])
  })
})

describe('finished work and ended runs', () => {
  it('a finished work item is not run again with the same inputs', () => {
    const script = runIn('DRAFTING')
    write(script, 'input', 1)
    work(script, 'plan', ['input'], { plan: 2 })
    const again = () => start(script, 'plan', { input: hash(1) })
    expect(again()).toEqual({ kind: 'same' })
    script.applyCommand(resume)
    script.walk('DRAFTING')
    expect(again()).toEqual({ kind: 'same' })
    expect(foldRun(throughText(script.events))).toEqual(script.run)
    expect(script.run.work_items.plan?.attempts).toBe(1)
  })

  it('a finished work item is run again when forced or when an input has changed', () => {
    const script = runIn('DRAFTING')
    write(script, 'input', 1)
    work(script, 'plan', ['input'], { plan: 2 })
    const forced = factsOf(start(script, 'plan', { input: hash(1) }, { forced: true }))
    expect(forced).toMatchObject([{ type: 'WORK_ITEM_STARTED', data: { because: 'forced' } }])
    script.applyCommand({ kind: 'finish-item', key: 'plan' })
    write(script, 'input', 7)
    const changed = factsOf(start(script, 'plan', { input: hash(7) }))
    expect(changed).toMatchObject([{ type: 'WORK_ITEM_STARTED', data: { because: 'stale' } }])
  })

  it('a failed or cancelled run keeps its events and a final state', () => {
    for (const kind of ['fail', 'cancel'] as const) {
      const script = longLife()
      const { artifacts_index, work_items, issues, section_states } = script.run
      const before = [...script.events]
      script.applyCommand({ kind, reason: 'enough' })
      expect(script.events.slice(0, before.length)).toEqual(before)
      expect(script.run).toMatchObject({ artifacts_index, work_items, issues, section_states })
      expect(script.run.run_state).toBe(kind === 'fail' ? 'FAILED' : 'CANCELLED')
      expect(script.events.at(-1)?.data).toEqual({ reason: 'enough' })
      expect(snapshotOf(throughText(script.events))).toBe(encode(script.run))
    }
  })
})
