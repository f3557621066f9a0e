// P6: ended jobs do not change, but for declared operator edges. Succeeded ones never change.
import fc from 'fast-check'
import type { Lifecycle } from 'pawl'
import { checkP6, defineLifecycle, type Fact, hardened, leased, standard, task } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { EVERY_LIFECYCLE, factOf, played } from '../core/job-play.ts'
import { histories } from '../support/random-history.ts'
import { append, lines } from './tamper.ts'

describe('P6, ended jobs stay ended', () => {
  it('holds in every random history of every lifecycle', () => {
    fc.assert(
      fc.property(histories({ lifecycles: EVERY_LIFECYCLE }), ({ script }) => {
        expect(lines(checkP6(script.lifecycle, script.facts))).toEqual([])
      }),
      { numRuns: 300 },
    )
  })

  it('holds by a second opinion: after an end only redrives and repairs leave a fact', () => {
    fc.assert(
      fc.property(histories({ lifecycles: EVERY_LIFECYCLE }), ({ told }) => {
        for (const { before, after, answer, command } of told) {
          if (before === null || before.outcome === null || answer.kind !== 'fact') continue
          if (command.kind === 'redrive') {
            expect(before.outcome).not.toBe('succeeded')
            expect(answer.fact.operator).toBeTruthy()
            continue
          }
          // What the doctor mended is on record, but the job is what it was.
          expect(command).toEqual({ kind: 'repair' })
          const { seq, updatedAt, reason } = after ?? before
          expect(after).toEqual({ ...before, seq, updatedAt, reason })
        }
      }),
      { numRuns: 300 },
    )
  })

  it('holds for why a job ended: a repair of its row does not overwrite the reason', () => {
    const script = played(standard, 'create', 'claim', 'fail')
    expect(script.job.reason).toBe('validation')
    factOf(script.operate({ kind: 'repair' }))
    expect(script.job.reason).toBe('validation')
  })
})

const found = (facts: readonly Fact[], lifecycle: Lifecycle = standard) =>
  lines(checkP6(lifecycle, facts))
const operator = { actor: 'operator', operator: 'ann', note: 'again' } as const

/** A lifecycle that declares a way out of success, which the promise forbids all the same. */
const endless = defineLifecycle({
  name: 'endless',
  version: 1,
  initial: 'open',
  states: {
    open: { role: 'ready', meaning: 'May be claimed.' },
    busy: { role: 'held', meaning: 'Is being worked on.' },
    good: { role: 'succeeded', meaning: 'Went well.' },
    bad: { role: 'failed', meaning: 'Went wrong.' },
  },
  edges: [
    { from: 'open', to: 'busy', on: ['claim', 'cancel'] },
    { from: 'busy', to: 'good', on: ['succeed'] },
    { from: 'busy', to: 'open', on: ['expire', 'release'] },
    { from: 'busy', to: 'bad', on: ['fail', 'give-up', 'reject', 'cancel'] },
    { from: 'good', to: 'open', on: ['redrive'], operator: true },
    { from: 'bad', to: 'open', on: ['redrive'], operator: true },
  ],
})

describe('P6 reports', () => {
  it('any way out of succeeded, by any actor', () => {
    const facts = played(standard, 'create', 'claim', 'commit').facts
    for (const [trigger, to] of [
      ['redrive', 'queued'],
      ['cancel', 'cancelled'],
      ['force', 'failed'],
      ['repair', 'queued'],
    ] as const) {
      expect(found(append(facts, { trigger, to, ...operator }))).toEqual([
        'P6 at 4: left succeeded after the job had ended there',
      ])
    }
  })

  it('a way out of succeeded even where a lifecycle declares one', () => {
    const again = { trigger: 'redrive', to: 'open', ...operator } as const
    const good = played(endless, 'create', 'claim', 'commit').facts
    expect(found(append(good, again), endless)).toHaveLength(1)
    const bad = played(endless, 'create', 'claim', 'fail').facts
    expect(found(append(bad, again), endless)).toEqual([])
  })

  it('a way out of failed that is no operator edge', () => {
    const facts = played(standard, 'create', 'claim', 'fail').facts
    for (const [trigger, to] of [
      ['claim', 'running'],
      ['due', 'retrying'],
      ['force', 'quarantined'],
    ] as const) {
      expect(found(append(facts, { trigger, to, ...operator }))).toEqual([
        'P6 at 4: left failed after the job had ended there',
      ])
    }
    const forced = append(played(leased, 'create', 'claim', 'fail').facts, {
      trigger: 'force',
      to: 'PENDING',
      ...operator,
    })
    expect(found(forced, leased)).toHaveLength(1)
  })
})

describe('P6 also reports', () => {
  it('a way out of cancelled', () => {
    const facts = played(standard, 'create', 'cancel').facts
    const redriven = append(facts, { trigger: 'redrive', to: 'queued', ...operator })
    expect(found(redriven)).toEqual(['P6 at 3: left cancelled after the job had ended there'])
  })

  it('a way through an ended state within one fact', () => {
    const facts = played(standard, 'create', 'claim').facts
    const through = append(facts, { trigger: 'fail', via: ['cancelled'], to: 'queued' })
    expect(found(through)).toHaveLength(1)
  })

  it('a fact that changes an ended job without moving it', () => {
    for (const job of [
      played(standard, 'create', 'claim', 'commit'),
      played(standard, 'create', 'claim', 'fail'),
      played(standard, 'create', 'cancel'),
    ]) {
      expect(found(append(job.facts, { trigger: 'prioritise', priority: 9 }))).toHaveLength(1)
      expect(found(append(job.facts, { trigger: 'reschedule', runAt: 0 }))).toHaveLength(1)
    }
  })

  it('nothing of an operator edge out of failed, and nothing of parked jobs', () => {
    const failed = played(standard, 'create', 'claim', 'fail').facts
    const redriven = append(failed, { trigger: 'redrive', to: 'queued', ...operator })
    expect(found(redriven)).toEqual([])
    const error = played(task, 'create', 'claim', 'fail').facts
    expect(found(append(error, { trigger: 'redrive', to: 'pending', ...operator }), task)).toEqual(
      [],
    )
    // A job of lifecycle hardened waits in failed; for that document it has not ended there.
    const waiting = played(hardened, 'create', 'claim', 'retry').facts
    expect(found(append(waiting, { trigger: 'due', to: 'pending' }), hardened)).toEqual([])
  })
})
