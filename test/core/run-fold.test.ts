// The fold in place: what was added can be taken back, until it is settled.
import fc from 'fast-check'
import { evolveRun, foldRun, LedgerBroken } from 'pawl/rules'
import type { Run } from 'pawl/runs'
import { describe, expect, it } from 'vitest'
import { RunFold } from '../../src/core/run/evolve.ts'
import { readNamesOf, staleNamesOf } from '../../src/core/run/known-names.ts'
import { type CollectionName, revisionOf } from '../../src/core/run/revisions.ts'
import { anyHistory, play } from './run-arbitraries.ts'
import { longLife } from './run-support.ts'

describe('events that are taken back', () => {
  it('leave the run as it was before them, whatever they were', () => {
    fc.assert(
      fc.property(anyHistory, fc.nat(), fc.nat(), (steps, a, b) => {
        const { events } = play(steps)
        const settled = 1 + (a % events.length)
        const kept = settled + (b % (events.length - settled + 1))
        const fold = new RunFold()
        for (const event of events.slice(0, settled)) fold.add(event)
        fold.toUndoable()
        for (const event of events.slice(settled)) fold.add(event)
        fold.undoAfter(kept)
        expect(fold.run).toEqual(foldRun(events.slice(0, kept)))
        expectNamesOf(fold)
        for (const event of events.slice(kept)) fold.add(event)
        expect(fold.run).toEqual(foldRun(events))
        expectNamesOf(fold)
      }),
      { numRuns: 200 },
    )
  })

  it('can be all of them, from the beginning', () => {
    const { events } = longLife()
    const fold = new RunFold().toUndoable()
    for (const event of events) fold.add(event)
    for (let kept = events.length; kept >= 0; kept--) {
      fold.undoAfter(kept)
      expect(fold.run).toEqual(foldRun(events.slice(0, kept)))
    }
    expect(fold.run).toBeNull()
  })

  it('stay once they are settled, or where they were added before it was asked for', () => {
    const { events, run } = longLife()
    const fold = new RunFold().toUndoable()
    for (const event of events) fold.add(event)
    fold.settle(events.length)
    fold.undoAfter(1)
    expect(fold.run).toEqual(run)
    const half = new RunFold().toUndoable()
    for (const event of events) half.add(event)
    half.settle(3)
    half.undoAfter(1)
    expect(half.run).toEqual(foldRun(events.slice(0, 3)))
    const read = new RunFold()
    for (const event of events) read.add(event)
    read.settle(1)
    read.undoAfter(1)
    expect(read.run).toEqual(run)
  })
})

/** The names that a fold keeps are those that a search through its run finds. */
function expectNamesOf({ run }: RunFold): void {
  const copy = structuredClone(run) as Run
  expect([...staleNamesOf(run as Run)].sort()).toEqual([...staleNamesOf(copy)].sort())
  // What was taken back may still be among the names that were read.
  expect([...readNamesOf(copy)].filter((name) => !readNamesOf(run as Run).has(name))).toEqual([])
}

it('an event that does not follow is refused in both ways of folding', () => {
  const { events, run } = longLife()
  const [first] = events
  if (first === undefined) throw new Error('a long life has events')
  expect(() => evolveRun(run, first)).toThrow(LedgerBroken)
  const fold = new RunFold()
  fold.add(first)
  expect(() => fold.add(first)).toThrow(LedgerBroken)
})

describe('the revision of a collection', () => {
  const NAMES: readonly CollectionName[] = [
    'artifacts_index',
    'issues',
    'section_states',
    'work_items',
  ]

  it('is another one whenever the collection has changed, also by taking back', () => {
    const { events } = longLife()
    const fold = new RunFold().toUndoable()
    const texts = new Map<string, string>()
    const look = () => {
      const run = fold.run as Run
      for (const name of NAMES) {
        const key = `${name} ${revisionOf(run[name])}`
        const text = JSON.stringify(run[name])
        expect(texts.get(key) ?? text).toBe(text)
        texts.set(key, text)
      }
    }
    for (const event of events) {
      fold.add(event)
      look()
    }
    for (let kept = events.length; kept > 0; kept--) {
      fold.undoAfter(kept)
      look()
    }
    expect(texts.size).toBeGreaterThan(NAMES.length)
  })

  it('is 0 where no fold changes it', () => {
    const { run } = longLife()
    for (const name of NAMES) expect(revisionOf({ ...run[name] })).toBe(0)
  })
})
