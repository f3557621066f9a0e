// P5: attempts only increase. Failures, crashes and releases are counted apart, each with its
// own bound.
import fc from 'fast-check'
import type { Lifecycle } from 'pawl'
import { checkP5, document, type Fact, leased, standard, task } from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { EVERY_LIFECYCLE, played, policyWith } from '../core/job-play.ts'
import { histories } from '../support/random-history.ts'
import { alter, append, lines } from './tamper.ts'

describe('P5, attempts rise and budgets hold', () => {
  it('holds in every random history of every lifecycle', () => {
    fc.assert(
      fc.property(histories({ lifecycles: EVERY_LIFECYCLE }), ({ script }) => {
        expect(lines(checkP5(script.lifecycle, script.facts))).toEqual([])
      }),
      { numRuns: 300 },
    )
  })

  it('holds by a second opinion, which watches the counters of the job step by step', () => {
    fc.assert(
      fc.property(histories({ lifecycles: EVERY_LIFECYCLE }), ({ script, policy, told }) => {
        const { retry, crashesMax, releasesMax } = policy ?? script.lifecycle.policy
        for (const { before, after, answer } of told) {
          if (after === null) continue
          expect(after.failures).toBeLessThanOrEqual(retry.max)
          expect(after.crashes).toBeLessThanOrEqual(crashesMax)
          expect(after.releases).toBeLessThanOrEqual(releasesMax)
          const fact = answer.kind === 'fact' ? answer.fact : undefined
          const opened = fact?.execution?.statuses.includes('LEASED') === true
          expect(after.attempt - (before?.attempt ?? 0)).toBe(opened ? 1 : 0)
          const redriven = fact?.trigger === 'redrive'
          for (const budget of ['failures', 'crashes', 'releases'] as const) {
            const change = after[budget] - (before?.[budget] ?? 0)
            if (redriven && budget !== 'releases') expect(change).toBeLessThanOrEqual(0)
            else expect([0, 1]).toContain(change)
          }
        }
      }),
      { numRuns: 300 },
    )
  })

  it('holds for each attempt: it ends at most one budget dearer', () => {
    fc.assert(
      fc.property(histories({ lifecycles: EVERY_LIFECYCLE }), ({ script: { facts } }) => {
        const paid = facts.filter(({ spends }) => spends !== undefined)
        const attempts = paid.map(({ execution }) => execution?.attempt)
        expect(new Set(attempts).size).toBe(paid.length)
        expect(attempts).not.toContain(undefined)
      }),
      { numRuns: 200 },
    )
  })
})

describe('P5 reports of attempts', () => {
  const twice = () => {
    const script = played(leased, 'create', 'claim')
    script.applyCommand({ kind: 'release', fence: script.fence })
    script.claim()
    return script.facts
  }
  const withAttempt = (attempt: number) => {
    const facts = twice()
    const execution = facts[3]?.execution
    return execution === undefined ? [] : alter(facts, 4, { execution: { ...execution, attempt } })
  }

  it('nothing where they rise one by one', () => {
    expect(checkP5(leased, twice())).toEqual([])
    expect(checkP5(leased, [])).toEqual([])
  })

  it('a number that falls, is negative, is given twice or is skipped', () => {
    for (const attempt of [0, -1, 1, 3]) {
      expect(lines(checkP5(leased, withAttempt(attempt)))).toEqual([
        `P5 at 4: has attempt ${attempt}, not 2`,
      ])
    }
  })

  it('a fact of an attempt that is not the present one', () => {
    const facts = append(twice(), { execution: { attempt: 1, statuses: ['ABORTED'] } })
    expect(lines(checkP5(leased, facts))).toEqual(['P5 at 5: has attempt 1, not 2'])
  })
})

const thrice = <T>(value: T): [T, T, T] => [value, value, value]

describe('P5 reports of budgets', () => {
  const spend = (facts: readonly Fact[], ...budgets: NonNullable<Fact['spends']>[]) =>
    budgets.reduce<Fact[]>((all, spends) => append(all, { spends }), [...facts])
  const created = (lifecycle: Lifecycle = standard) => played(lifecycle, 'create').facts
  const found = (facts: readonly Fact[], lifecycle: Lifecycle = standard) =>
    lines(checkP5(lifecycle, facts))

  it('a fourth failure, a fourth crash and a release beyond its bound', () => {
    expect(found(spend(created(), ...thrice('failure' as const)))).toEqual([])
    expect(found(spend(created(), ...thrice('failure' as const), 'failure'))).toEqual([
      'P5 at 5: failure budget of 3 is exceeded',
    ])
    expect(found(spend(created(), ...thrice('crash' as const), 'crash'))).toEqual([
      'P5 at 5: crash budget of 3 is exceeded',
    ])
    const releases = Array.from({ length: 100 }, () => 'release' as const)
    expect(found(spend(created(), ...releases))).toEqual([])
    expect(found(spend(created(), ...releases, 'release'))).toEqual([
      'P5 at 102: release budget of 100 is exceeded',
    ])
  })

  it('nothing where each budget is kept, since they are counted apart', () => {
    const all = [...thrice('failure' as const), ...thrice('crash' as const)]
    expect(found(spend(created(), ...all, ...thrice('release' as const)))).toEqual([])
  })

  it('the bounds of the lifecycle', () => {
    expect(found(spend(created(task), 'failure'), task)).toHaveLength(1)
    expect(found(spend(created(task), 'crash', 'crash'), task)).toEqual([])
    expect(found(spend(created(task), ...thrice('crash' as const)), task)).toHaveLength(1)
    expect(found(spend(created(document), ...thrice('failure' as const)), document)).toEqual([])
  })

  it('the bounds of the job where it has its own', () => {
    const script = new JobScript(standard)
    const policy = policyWith(standard, { crashesMax: 1, releasesMax: 0 })
    script.create({ policy: { ...policy, retry: { ...policy.retry, max: 0 } } })
    expect(found(spend(script.facts, 'failure'))).toHaveLength(1)
    expect(found(spend(script.facts, 'crash'))).toEqual([])
    expect(found(spend(script.facts, 'crash', 'crash'))).toHaveLength(1)
    expect(found(spend(script.facts, 'release'))).toHaveLength(1)
  })

  it('every fact beyond the bound, not only the first', () => {
    const facts = spend(created(), ...thrice('crash' as const), 'crash', 'crash')
    expect(checkP5(standard, facts).map(({ seq }) => seq)).toEqual([5, 6])
  })

  it('nothing after a redrive, which forgives failures and crashes', () => {
    for (const budget of ['failure', 'crash'] as const) {
      const spent = spend(created(), ...thrice(budget))
      const redriven = append(spent, { trigger: 'redrive', resets: true, operator: 'ann' })
      expect(found(spend(redriven, ...thrice(budget)))).toEqual([])
      expect(found(spend(redriven, ...thrice(budget), budget))).toHaveLength(1)
    }
  })

  it('a release too many even after a redrive, which forgives no releases', () => {
    const spent = spend(created(), ...Array.from({ length: 100 }, () => 'release' as const))
    const redriven = append(spent, { trigger: 'redrive', resets: true, operator: 'ann' })
    expect(found(spend(redriven, 'release'))).toHaveLength(1)
  })

  it('budgets that something else than a redrive forgives', () => {
    for (const trigger of ['retry', 'expire', 'due', 'prioritise'] as const) {
      expect(found(append(created(), { trigger, resets: true })), trigger).toHaveLength(1)
    }
  })
})
