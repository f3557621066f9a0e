// P4: whatever a holder writes bears the claim of its attempt, and its lease still ran.
import fc from 'fast-check'
import { checkP4, type Fact, standard } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { EVERY_LIFECYCLE, played } from '../core/job-play.ts'
import { histories } from '../support/random-history.ts'
import { alter, lines } from './tamper.ts'

describe('P4, writes are fenced', () => {
  it('holds in every random history of every lifecycle', () => {
    fc.assert(
      fc.property(histories({ lifecycles: EVERY_LIFECYCLE }), ({ script }) => {
        expect(checkP4(script.lifecycle, script.facts)).toEqual([])
      }),
      { numRuns: 300 },
    )
  })
})

describe('P4 reports', () => {
  const retried = () =>
    alter(played(standard, 'create', 'claim', 'retry').facts, 3, { actor: 'worker' })
  const closing = () => retried().at(-1)?.execution as NonNullable<Fact['execution']>

  it('a report that came by the claim of another', () => {
    const facts = alter(retried(), 3, { execution: { ...closing(), claim: 'another' } })
    const { claim } = closing()
    expect(lines(checkP4(standard, facts))).toEqual([`P4 at 3: has claim another, not ${claim}`])
  })

  it('a report that came when the lease had ended, or that has no lease', () => {
    const { leaseUntil = 0 } = closing()
    const late = 'P4 at 3: was written after the lease had expired'
    expect(lines(checkP4(standard, alter(retried(), 3, { at: leaseUntil })))).toEqual([late])
    expect(checkP4(standard, alter(retried(), 3, { at: leaseUntil - 1 }))).toEqual([])
    const { leaseUntil: _, ...execution } = closing()
    expect(lines(checkP4(standard, alter(retried(), 3, { execution })))).toEqual([late])
  })

  it('nothing of what others than the holder may do at any time', () => {
    const { leaseUntil = 0 } = closing()
    const at = leaseUntil + 1
    expect(checkP4(standard, alter(retried(), 3, { at, actor: 'operator' }))).toEqual([])
    const execution = { ...closing(), abort: 'lease_expired' } as const
    expect(checkP4(standard, alter(retried(), 3, { at, execution }))).toEqual([])
    expect(checkP4(standard, [])).toEqual([])
  })
})
