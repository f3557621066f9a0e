// The promises together find every kind of semantic damage to a ledger, wherever it is done, and
// they report it instead of throwing, however broken a record is.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { EVERY_LIFECYCLE } from '../core/job-play.ts'
import { type History, histories } from '../support/random-history.ts'
import { MUTATIONS } from './mutations.ts'
import { lines, reports } from './tamper.ts'

const anyHistory = histories({ lifecycles: EVERY_LIFECYCLE })

describe('a legal ledger and its row', () => {
  it('break no promise', () => {
    fc.assert(
      fc.property(anyHistory, ({ script: { lifecycle, job, facts } }) => {
        expect(lines(reports(lifecycle, job, facts))).toEqual([])
      }),
      { numRuns: 200 },
    )
  })
})

describe('a promise is reported as broken when somebody', () => {
  for (const [what, mutation] of Object.entries(MUTATIONS)) {
    it(what, () => {
      fc.assert(
        fc.property(anyHistory, fc.nat(), ({ script: { lifecycle, job, facts } }, n) => {
          const mutants = mutation({ lifecycle, facts })
          const mutant = mutants[n % mutants.length]
          // Histories without a place for the damage do not count as runs.
          if (mutant === undefined) return fc.pre(false)
          const found = reports(lifecycle, job, mutant)
          expect(found, JSON.stringify(mutant, null, 1)).not.toEqual([])
        }),
        { numRuns: 30, maxSkipsPerRun: 500 },
      )
    })
  }
})

/** Every path to a value inside a record. */
function pathsOf(value: unknown, path: readonly string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => [
    [...path, key],
    ...pathsOf(inner, [...path, key]),
  ])
}

/** A copy of a record in which one value was lost, or is not what it should be. */
function damage(value: unknown, [key = '', ...rest]: readonly string[], by: unknown): unknown {
  const copy = { ...(value as Record<string, unknown>) }
  if (rest.length > 0) copy[key] = damage(copy[key], rest, by)
  else if (by === undefined) delete copy[key]
  else copy[key] = by
  return Array.isArray(value) ? Object.values(copy) : copy
}

/** The ledger of a history with damage to one value of one fact. */
function damaged({ script: { facts } }: History, n: number, m: number, by: unknown) {
  const i = n % facts.length
  const paths = pathsOf(facts[i])
  const broken = damage(facts[i], paths[m % paths.length] ?? [], by)
  return facts.with(i, broken as (typeof facts)[number])
}

describe('the promises about damaged records', () => {
  const neverThrow = (values: fc.Arbitrary<unknown>) =>
    fc.assert(
      fc.property(anyHistory, fc.nat(), fc.nat(), values, (history, n, m, by) => {
        const { lifecycle, job } = history.script
        const facts = damaged(history, n, m, by)
        expect(() => reports(lifecycle, job, facts)).not.toThrow()
      }),
      { numRuns: 500 },
    )

  it('are answers and never exceptions where a value was lost', () => {
    neverThrow(fc.constant(undefined))
  })

  it('are answers and never exceptions where a value is of another kind', () => {
    neverThrow(fc.constantFrom(null, 7, 'seven', {}, [], true))
  })
})
