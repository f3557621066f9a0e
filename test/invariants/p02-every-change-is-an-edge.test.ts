// P2: a job is in exactly one state, and every change is an edge of its lifecycle, or a forced or
// repaired fact with operator and reason.
import fc from 'fast-check'
import type { Lifecycle } from 'pawl'
import { checkP2, document, type Fact, hardened, standard, task } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { EVERY_LIFECYCLE, played } from '../core/job-play.ts'
import { histories } from '../support/random-history.ts'
import { alter, append, lines, without } from './tamper.ts'

describe('P2, every change is an edge', () => {
  it('holds in every random history of every lifecycle', () => {
    fc.assert(
      fc.property(histories({ lifecycles: EVERY_LIFECYCLE }), ({ script }) => {
        expect(lines(checkP2(script.lifecycle, script.facts))).toEqual([])
      }),
      { numRuns: 300 },
    )
  })

  it('holds by a second opinion, which asks the list of edges alone', () => {
    fc.assert(
      fc.property(
        histories({ lifecycles: EVERY_LIFECYCLE }),
        ({ script: { lifecycle, facts } }) => {
          const edges = new Set(lifecycle.machine.edges.map(({ from, to }) => `${from} → ${to}`))
          let state: string | undefined
          for (const { trigger, from, via = [], to } of facts) {
            const states = [from ?? [], via, to].flat()
            if (state === undefined) expect(states[0]).toBe(lifecycle.machine.initial)
            else expect(from).toBe(state)
            state = to
            if (trigger === 'force' || trigger === 'repair') continue
            for (const [i, next] of states.entries()) {
              const before = states[i - 1] ?? next
              if (before !== next) expect(edges).toContain(`${before} → ${next}`)
            }
          }
        },
      ),
      { numRuns: 300 },
    )
  })

  it('finds nothing wrong with a ledger of no facts', () => {
    expect(checkP2(standard, [])).toEqual([])
  })
})

/** What P2 reports, one line each. */
const found = (facts: readonly Fact[], lifecycle: Lifecycle = standard) =>
  lines(checkP2(lifecycle, facts))

/** Create, claim with start, retryable failure: seq 1 to 3. */
const retried = () => played(standard, 'create', 'claim', 'retry').facts

describe('P2 reports', () => {
  it('a change that is no edge', () => {
    expect(found(append(retried(), { trigger: 'due', to: 'running' }))).toEqual([
      'P2 at 4: retrying → running is not an edge',
    ])
  })

  it('a state that the lifecycle does not have', () => {
    expect(found(append(retried(), { trigger: 'due', to: 'frozen' }))).toEqual([
      'P2 at 4: retrying → frozen is not an edge',
    ])
  })

  it('a change by way of a state where no edge leads through', () => {
    const facts = append(retried(), { trigger: 'due', via: ['created'], to: 'queued' })
    expect(found(facts)).toEqual([
      'P2 at 4: retrying → created is not an edge',
      'P2 at 4: due does not take created → queued',
    ])
  })

  it('a creation that leaves the initial state by no edge', () => {
    expect(found(alter(retried().slice(0, 1), 1, { via: ['created'], to: 'running' }))).toEqual([
      'P2 at 1: created → running is not an edge',
    ])
  })

  it('a creation that begins elsewhere than in the initial state', () => {
    expect(found(without(retried().slice(0, 1), 1, 'via'))).toHaveLength(1)
    const running = alter(without(retried().slice(0, 1), 1, 'via'), 1, { to: 'running' })
    expect(found(running)).toHaveLength(1)
    expect(found(alter(retried().slice(0, 1), 1, { via: ['scheduled'] }))).not.toEqual([])
  })

  it('a gap in the numbers', () => {
    const [first, , third] = retried() as [Fact, Fact, Fact]
    const facts = [first, { ...third, from: 'queued' }]
    expect(found(facts)).toContain('P2 at 3: seq 2 is missing')
  })

  it('a number that is given twice', () => {
    const facts = append(retried(), { seq: 3 })
    expect(found(facts)).toEqual(['P2 at 3: seq 4 is missing'])
  })
})

describe('P2 reports of chains and triggers', () => {
  it('a fact that starts elsewhere than the one before ended', () => {
    const facts = append(retried(), { trigger: 'due', from: 'scheduled', to: 'queued' })
    expect(found(facts)).toEqual(['P2 at 4: starts in scheduled, not in retrying'])
  })

  it('a first fact that starts somewhere', () => {
    const facts = alter(retried().slice(0, 1), 1, { from: 'created' })
    expect(found(without(facts, 1, 'via'))).toEqual(['P2 at 1: starts in created, not in null'])
  })

  it('an edge that was taken by the wrong trigger', () => {
    expect(found(append(retried(), { trigger: 'claim', to: 'queued' }))).toEqual([
      'P2 at 4: claim does not take retrying → queued',
    ])
    expect(found(append(retried(), { trigger: 'reschedule', to: 'cancelled' }))).toEqual([
      'P2 at 4: reschedule does not take retrying → cancelled',
      'P2 at 4: ends undefined, not cancelled',
    ])
  })

  it('an edge that was taken by a trigger that takes none', () => {
    for (const trigger of ['start', 'step', 'stall', 'prioritise'] as const) {
      expect(found(append(retried(), { trigger, to: 'queued' }))).toEqual([
        `P2 at 4: ${trigger} does not take retrying → queued`,
      ])
    }
  })

  it('a release by a park, where the lifecycle has a state for parked jobs', () => {
    const running = played(standard, 'create', 'claim').facts
    const operator = { operator: 'ann', note: 'n' }
    expect(found(append(running, { trigger: 'park', to: 'queued', ...operator }))).toEqual([
      'P2 at 3: park does not take running → queued',
    ])
  })
})

describe('P2 reports of operators', () => {
  const operator = { actor: 'operator', operator: 'ann', note: 'it was stuck' } as const

  it('an operator’s edge that nobody is named for', () => {
    const failed = played(standard, 'create', 'claim', 'fail').facts
    const redriven = append(failed, { trigger: 'redrive', to: 'queued', ...operator })
    expect(found(redriven)).toEqual([])
    for (const name of [undefined, '']) {
      const facts = without(redriven, 4, 'operator')
      expect(found(name === undefined ? facts : alter(facts, 4, { operator: name }))).toEqual([
        'P2 at 4: failed → queued was taken without an operator',
      ])
    }
  })

  it('a forced or repaired move that nobody is named for, or that says not why', () => {
    for (const trigger of ['force', 'repair'] as const) {
      const forced = append(retried(), { trigger, to: 'created', ...operator })
      expect(found(forced)).toEqual([])
      for (const lost of ['operator', 'note'] as const) {
        expect(found(without(forced, 4, lost))).toEqual([
          'P2 at 4: was forced without an operator or without a note',
        ])
        expect(found(alter(forced, 4, { [lost]: '' }))).toHaveLength(1)
      }
    }
  })

  it('a repair without a move that nobody is named for', () => {
    expect(found(append(retried(), { trigger: 'repair' }))).toEqual([
      'P2 at 4: was forced without an operator or without a note',
    ])
  })

  it('a forced move that starts elsewhere, or comes after a gap', () => {
    const forced = { trigger: 'force', to: 'created', ...operator } as const
    expect(found(append(retried(), { ...forced, from: 'queued' }))).toEqual([
      'P2 at 4: starts in queued, not in retrying',
    ])
    expect(found(append(retried(), { ...forced, seq: 5 }))).toEqual(['P2 at 5: seq 4 is missing'])
  })

  it('a forced move into a held or succeeded state, or into one that does not exist', () => {
    for (const trigger of ['force', 'repair'] as const) {
      for (const to of ['running', 'succeeded', 'frozen']) {
        const outcome = to === 'succeeded' ? ({ outcome: to } as const) : {}
        const facts = append(retried(), { trigger, to, ...outcome, ...operator })
        expect(found(facts), to).toHaveLength(1)
      }
    }
  })

  it('nothing of a park in a lifecycle without a parked state, which gives the job back', () => {
    for (const lifecycle of [document, task]) {
      expect(found(played(lifecycle, 'create', 'claim', 'park').facts, lifecycle)).toEqual([])
    }
  })
})

describe('P2 reports of attempts', () => {
  const damage = (facts: readonly Fact[]) => found(facts, hardened)
  const leased = () => played(hardened, 'create', 'lease').facts
  const change = (...statuses: NonNullable<Fact['execution']>['statuses']) => ({
    execution: { attempt: 1, statuses },
  })

  it('a first status that is not LEASED', () => {
    expect(damage(alter(leased(), 2, change('IN_PROGRESS')))).toEqual([
      'P2 at 2: execution 1 went from nothing to IN_PROGRESS',
    ])
  })

  it('a jump over a status, within one fact and from one to the next', () => {
    expect(damage(alter(leased(), 2, change('LEASED', 'COMMITTED')))).toEqual([
      'P2 at 2: execution 1 went from LEASED to COMMITTED',
    ])
    expect(damage(append(leased(), change('DONE')))).toEqual([
      'P2 at 3: execution 1 went from LEASED to DONE',
    ])
  })

  it('a status that is entered twice', () => {
    expect(damage(append(leased(), change('LEASED')))).toEqual([
      'P2 at 3: execution 1 went from LEASED to LEASED',
    ])
  })

  it('a way back, and a way out of an end', () => {
    expect(damage(append(leased(), change('IN_PROGRESS', 'LEASED')))).toEqual([
      'P2 at 3: execution 1 went from IN_PROGRESS to LEASED',
    ])
    expect(damage(append(leased(), change('ABORTED', 'IN_PROGRESS')))).toEqual([
      'P2 at 3: execution 1 went from ABORTED to IN_PROGRESS',
    ])
    const committed = append(leased(), change('IN_PROGRESS', 'COMMITTED'))
    expect(damage(append(committed, change('ABORTED')))).toEqual([
      'P2 at 4: execution 1 went from COMMITTED to ABORTED',
    ])
  })

  it('all that is wrong, not only the first of it', () => {
    const facts = append(append(leased(), { to: 'succeeded' }), { seq: 9, ...change('DONE') })
    expect(damage(facts)).toEqual([
      'P2 at 3: prioritise does not take running → succeeded',
      'P2 at 3: ends undefined, not succeeded',
      'P2 at 9: seq 4 is missing',
      'P2 at 9: execution 1 went from LEASED to DONE',
    ])
  })
})
