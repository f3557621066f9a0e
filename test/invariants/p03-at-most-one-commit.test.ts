// P3: at most one execution per job ever reaches COMMITTED.
import fc from 'fast-check'
import { type Command, checkP3, standard } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { EVERY_LIFECYCLE, played, wordOf } from '../core/job-play.ts'
import { histories } from '../support/random-history.ts'
import { append, lines } from './tamper.ts'

describe('P3, at most one commit', () => {
  it('holds in every random history of every lifecycle', () => {
    fc.assert(
      fc.property(histories({ lifecycles: EVERY_LIFECYCLE }), ({ script }) => {
        expect(checkP3(script.lifecycle, script.facts)).toEqual([])
        // A second opinion that does not ask the predicate.
        const statuses = script.facts.flatMap(({ execution }) => execution?.statuses ?? [])
        const commits = statuses.filter((status) => status === 'COMMITTED').length
        expect(commits).toBeLessThanOrEqual(1)
        if (script.job.outcome === 'succeeded') expect(commits).toBe(1)
      }),
      { numRuns: 300 },
    )
  })

  it('holds because nothing that a history said before is a commit again afterwards', () => {
    fc.assert(
      fc.property(histories({ lifecycles: EVERY_LIFECYCLE }), ({ script, told }) => {
        const first = told.findIndex(
          ({ command, answer }) => command.kind === 'commit' && answer.kind === 'fact',
        )
        fc.pre(first >= 0)
        const again: Command[] = told.map(({ command }) => command)
        for (const command of again.filter(({ kind }) => kind === 'commit' || kind === 'claim')) {
          expect(['same', 'E_STALE_FENCE', 'E_COMMITTED']).toContain(
            wordOf(script.applyCommand(command)),
          )
        }
      }),
      { numRuns: 200 },
    )
  })
})

describe('P3 reports', () => {
  const committed = () => played(standard, 'create', 'claim', 'effects').facts

  it('a second commit of another attempt, and a third', () => {
    const second = append(committed(), { execution: { attempt: 2, statuses: ['COMMITTED'] } })
    expect(lines(checkP3(standard, second))).toEqual(['P3 at 4: a second execution was committed'])
    const third = append(second, { execution: { attempt: 3, statuses: ['COMMITTED', 'DONE'] } })
    expect(checkP3(standard, third).map(({ seq }) => seq)).toEqual([4, 5])
  })

  it('a second commit of the same attempt', () => {
    const facts = append(committed(), { execution: { attempt: 1, statuses: ['COMMITTED'] } })
    expect(checkP3(standard, facts)).toHaveLength(1)
  })

  it('a second commit in the middle of other statuses', () => {
    const statuses = ['LEASED', 'IN_PROGRESS', 'COMMITTED', 'DONE'] as const
    const facts = append(committed(), { execution: { attempt: 2, statuses } })
    expect(checkP3(standard, facts)).toHaveLength(1)
  })

  it('nothing of one commit, and nothing of none', () => {
    expect(checkP3(standard, committed())).toEqual([])
    expect(checkP3(standard, played(standard, 'create', 'claim', 'retry').facts)).toEqual([])
    expect(checkP3(standard, [])).toEqual([])
  })
})
