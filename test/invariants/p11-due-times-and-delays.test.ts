// P11: retries are bounded, spread (jitter unless the lifecycle fixes the delay) and never before
// their due time.
import fc from 'fast-check'
import type { Lifecycle } from 'pawl'
import {
  checkP11,
  document,
  type Fact,
  hardened,
  type JobPolicy,
  leased,
  standard,
  task,
} from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { EVERY_LIFECYCLE, HOUR, played, TRANSIENT } from '../core/job-play.ts'
import { histories } from '../support/random-history.ts'
import { alter, append, lines, without } from './tamper.ts'

const START = Date.UTC(2026, 0, 1)
const YEAR = 366 * 24 * HOUR

/** The shortest and longest wait before the n-th retry, by the formula of the policy. */
function waits({ retry }: JobPolicy, n: number): [number, number] {
  const { backoff, delayMs, factor, delayMaxMs, jitter } = retry
  const base = backoff === 'fixed' ? delayMs : Math.min(delayMs * factor ** (n - 1), delayMaxMs)
  const window = base === 0 ? 0 : Math.max(base, 12_000)
  return [Math.round(base), Math.round(base + window * jitter)]
}

describe('P11, due times and delays are kept', () => {
  it('holds in every random history of every lifecycle', () => {
    fc.assert(
      fc.property(histories({ lifecycles: EVERY_LIFECYCLE }), ({ script }) => {
        expect(lines(checkP11(script.lifecycle, script.facts))).toEqual([])
      }),
      { numRuns: 300 },
    )
  })

  it('holds by a second opinion: no claim comes before the due time of its job', () => {
    fc.assert(
      fc.property(histories({ lifecycles: EVERY_LIFECYCLE }), ({ told }) => {
        for (const { command, context, before, answer } of told) {
          if (command.kind !== 'claim' || answer.kind !== 'fact') continue
          expect(before?.runAt ?? Number.POSITIVE_INFINITY).toBeLessThanOrEqual(context.now)
        }
      }),
      { numRuns: 300 },
    )
  })

  it('holds by a second opinion: each failure waits as the formula of its policy says', () => {
    fc.assert(
      fc.property(histories({ lifecycles: EVERY_LIFECYCLE }), ({ script, policy, told }) => {
        for (const { command, context, after, answer } of told) {
          if (answer.kind !== 'fact' || answer.fact.trigger !== 'retry' || after === null) continue
          const wait = (after.runAt ?? Number.NaN) - context.now
          const asked = command.kind === 'fail' ? command.failure.retryAfterMs : undefined
          const bounds = waits(policy ?? script.lifecycle.policy, after.failures)
          const [min, max] =
            asked === undefined || script.lifecycle.retryFixed ? bounds : [asked, asked]
          expect(wait).toBeGreaterThanOrEqual(min)
          expect(wait).toBeLessThanOrEqual(max)
        }
      }),
      { numRuns: 300 },
    )
  })
})

describe('P11 reports of claims', () => {
  const found = (facts: readonly Fact[]) => lines(checkP11(standard, facts))
  const claimed = () => played(standard, 'create', 'claim').facts

  it('one before the due time of the job, by a millisecond', () => {
    expect(found(alter(claimed(), 1, { runAt: START + 1 }))).toEqual([
      'P11 at 2: was claimed before it was due',
    ])
    expect(found(alter(claimed(), 1, { runAt: START }))).toEqual([])
  })

  it('one of a job that has no due time', () => {
    expect(found(alter(claimed(), 1, { runAt: null }))).toHaveLength(1)
    expect(found(without(claimed(), 1, 'runAt'))).toHaveLength(1)
  })

  it('one before the time to which a fact in between has moved it', () => {
    const moved = append(played(standard, 'create').facts, {
      trigger: 'reschedule',
      runAt: START + 9,
    })
    const claim = { trigger: 'claim', to: 'running' } as const
    expect(found(append(moved, { ...claim, at: START + 8 }))).toHaveLength(1)
    expect(found(append(moved, { ...claim, at: START + 9 }))).toEqual([])
  })
})

/** A running job of attempt n + 1 after n retries, with the fact of the next retry appended. */
function retried(lifecycle: Lifecycle, wait: number, fields: Partial<Fact> = {}): Fact[] {
  const { facts } = played(lifecycle, 'create', 'claim')
  const to = lifecycle.name === 'leased' ? 'PENDING' : 'failed'
  return append(facts, {
    trigger: 'retry',
    to,
    spends: 'failure',
    runAt: START + wait,
    ...fields,
  })
}

describe('P11 reports of retries', () => {
  const found = (facts: readonly Fact[], lifecycle: Lifecycle = standard) =>
    lines(checkP11(lifecycle, facts))

  it('one that comes too early or too late for its policy', () => {
    expect(found(retried(standard, 999))).toEqual([
      'P11 at 3: waits 999 ms instead of 1000 to 13000',
    ])
    expect(found(retried(standard, 13_001))).toEqual([
      'P11 at 3: waits 13001 ms instead of 1000 to 13000',
    ])
    expect(found(retried(standard, 1000))).toEqual([])
    expect(found(retried(standard, 13_000))).toEqual([])
  })

  it('one that says nothing of its time', () => {
    const facts = without(retried(standard, 0), 3, 'runAt')
    expect(found(alter(facts, 3, { at: START + 5 }))).toHaveLength(1)
    expect(found(alter(facts, 3, { runAt: null }))).toHaveLength(1)
  })

  it('nothing of a delay that the handler asked for, up to a year', () => {
    for (const wait of [0, 1, HOUR, YEAR]) {
      expect(found(retried(standard, wait, { delayAsked: true }))).toEqual([])
    }
    for (const wait of [-1, YEAR + 1]) {
      expect(found(retried(standard, wait, { delayAsked: true }))).toHaveLength(1)
    }
  })

  it('a delay that was asked for in a lifecycle that fixes it', () => {
    for (const wait of [0, 999, 1001, HOUR]) {
      expect(found(retried(document, wait, { delayAsked: true }), document)).toEqual([
        `P11 at 3: waits ${wait} ms instead of 1000 to 1000`,
      ])
    }
    expect(found(retried(document, 1000), document)).toEqual([])
  })

  it('the bounds of the job where it has its own policy, growing with each retry', () => {
    const { policy } = leased
    const retry = { ...policy.retry, max: 5, jitter: 0.5, backoff: 'exponential' } as const
    const script = new JobScript(leased)
    script.create({ policy: { ...policy, retry } })
    const again = (facts: readonly Fact[], wait: number) =>
      append(facts, { trigger: 'retry', spends: 'failure', runAt: START + wait })
    expect(found(again(script.facts, 7000), leased)).toEqual([])
    expect(found(again(script.facts, 7001), leased)).toHaveLength(1)
    const second = again(script.facts, 1500)
    expect(found(again(second, 1999), leased)).toHaveLength(1)
    expect(found(again(second, 2000), leased)).toEqual([])
    expect(found(again(second, 8001), leased)).toHaveLength(1)
    // A redrive forgives the failures, so that the delays begin anew.
    const redriven = append(second, { trigger: 'redrive', resets: true })
    expect(found(again(redriven, 7001), leased)).toHaveLength(1)
    expect(found(again(redriven, 1000), leased)).toEqual([])
  })
})

describe('P11 reports of crashes', () => {
  const crashed = (lifecycle: Lifecycle, wait: number, spends: 'crash' | 'failure') =>
    append(played(lifecycle, 'create', 'claim').facts, {
      trigger: 'expire',
      spends,
      runAt: START + wait,
    })

  it('a wait that is not the lifecycle’s own', () => {
    const cases: [Lifecycle, 'crash' | 'failure', right: number[], wrong: number[]][] = [
      [standard, 'crash', [1000, 13_000], [0, 999, 13_001]],
      [hardened, 'crash', [60_000], [0, 59_999, 60_001]],
      [leased, 'crash', [1000, 13_000], [0, 999, 13_001]],
      [document, 'failure', [1000], [0, 999, 1001]],
      [task, 'crash', [0], [-1, 1]],
    ]
    for (const [lifecycle, spends, right, wrong] of cases) {
      for (const wait of right) {
        expect(checkP11(lifecycle, crashed(lifecycle, wait, spends))).toEqual([])
      }
      for (const wait of wrong) {
        const found = checkP11(lifecycle, crashed(lifecycle, wait, spends))
        expect(found, `${lifecycle.name} ${wait}`).toHaveLength(1)
      }
    }
  })

  it('a wait that fits another number of crashes', () => {
    const { policy } = standard
    const retry = { ...policy.retry, jitter: 0, backoff: 'exponential' } as const
    const script = new JobScript(standard)
    script.create({ policy: { ...policy, retry } })
    script.claim()
    script.applyCommand({ kind: 'fail', fence: script.fence, failure: TRANSIENT })
    const crash = (facts: readonly Fact[], wait: number) =>
      append(facts, { trigger: 'expire', spends: 'crash', runAt: START + wait })
    // The failure before is counted apart: this is the first crash.
    expect(checkP11(standard, crash(script.facts, 1000))).toEqual([])
    expect(checkP11(standard, crash(script.facts, 2000))).toHaveLength(1)
    const second = crash(script.facts, 1000)
    expect(checkP11(standard, crash(second, 2000))).toEqual([])
    expect(checkP11(standard, crash(second, 1000))).toHaveLength(1)
  })

  it('nothing of releases, suspensions and redrives, which may be due at any time', () => {
    for (const trigger of ['release', 'suspend', 'redrive', 'submit', 'park'] as const) {
      const facts = append(played(standard, 'create').facts, { trigger, runAt: START + 123 })
      expect(checkP11(standard, facts)).toEqual([])
    }
    expect(checkP11(standard, [])).toEqual([])
  })
})
