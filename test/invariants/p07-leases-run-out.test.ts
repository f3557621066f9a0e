// P7: an attempt is taken from its holder only when its lease has run out.
import fc from 'fast-check'
import { checkP7, type Fact, standard } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { crash, EVERY_LIFECYCLE, played } from '../core/job-play.ts'
import { histories } from '../support/random-history.ts'
import { alter, lines } from './tamper.ts'

describe('P7, leases run out', () => {
  it('holds in every random history of every lifecycle', () => {
    fc.assert(
      fc.property(histories({ lifecycles: EVERY_LIFECYCLE }), ({ script }) => {
        expect(checkP7(script.lifecycle, script.facts)).toEqual([])
      }),
      { numRuns: 300 },
    )
  })
})

describe('P7 reports', () => {
  const expired = () => {
    const script = played(standard, 'create', 'claim')
    crash(script)
    return script.facts
  }
  const closing = () => expired().at(-1) as Fact

  it('a lease that was taken back while it ran', () => {
    const { seq, execution } = closing()
    const leaseUntil = execution?.leaseUntil ?? 0
    const facts = alter(expired(), seq, { at: leaseUntil - 1 })
    const what = `P7 at ${seq}: the lease was recovered before it expired`
    expect(lines(checkP7(standard, facts))).toEqual([what])
  })

  it('nothing of a lease that had just ended, nor of an attempt without one', () => {
    const { seq, execution } = closing()
    const at = execution?.leaseUntil ?? 0
    expect(checkP7(standard, alter(expired(), seq, { at }))).toEqual([])
    const { leaseUntil: _, ...rest } = execution as NonNullable<Fact['execution']>
    expect(checkP7(standard, alter(expired(), seq, { execution: rest }))).toEqual([])
    expect(checkP7(standard, [])).toEqual([])
  })
})
