// P18: an acknowledged signal is received once, in order, or reported unread.
import fc from 'fast-check'
import type { Job } from 'pawl'
import { checkFacts, checkP18, type Fact, fold, standard } from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { unreadSignals } from '../../src/core/job/wait-promise.ts'
import type { Wait } from '../../src/core/job/waits.ts'
import { EVERY_LIFECYCLE } from '../core/job-play.ts'
import { histories } from '../support/random-history.ts'
import { alter, append, lines } from './tamper.ts'

const wait = (n: number, until: number | null = null): Wait => ({
  for: 'signal',
  name: 'approval',
  n,
  until,
})

/** Two signals, of which a wait receives the first; a wait that times out; a wait that is woken. */
function story(): Fact[] {
  const script = new JobScript(standard)
  const ask = (own: Wait) =>
    script.applyCommand({ kind: 'wait', fence: script.fence, wait: own }, { actor: 'worker' })
  const send = (key: string) => script.applyCommand({ kind: 'signal', name: 'approval', key })
  script.create() // 1
  script.claim() // 2
  send('k1') // 3
  send('k2') // 4
  ask(wait(1)) // 5 receives 3
  ask(wait(2)) // 6 receives 4
  ask(wait(3, script.clock.now() + 10)) // 7 waits
  script.clock.advance(10)
  script.applyCommand({ kind: 'due' }) // 8
  script.claim() // 9
  ask(wait(3)) // 10 timed out
  ask(wait(4)) // 11 waits
  send('k3') // 12 wakes
  script.claim() // 13
  ask(wait(4)) // 14 receives 12
  send('k4') // 15 unread
  return script.facts
}

const found = (facts: readonly Fact[]) => lines(checkP18(standard, facts))
const received = (n: number, signal?: number): Partial<Fact> => ({
  received: { for: 'signal', name: 'approval', n, ...(signal !== undefined && { signal }) },
})

describe('P18, signals are received once and in order', () => {
  it('holds in every random history of every lifecycle', () => {
    fc.assert(
      fc.property(histories({ lifecycles: EVERY_LIFECYCLE }), ({ script }) => {
        expect(lines(checkP18(script.lifecycle, script.facts))).toEqual([])
      }),
      { numRuns: 300 },
    )
  })

  it('holds in a story with each of its cases, and names the signal that is unread', () => {
    const facts = story()
    expect(facts.map(({ trigger }) => trigger).join(' ')).toBe(
      'create claim signal signal receive receive wait due claim receive wait signal claim ' +
        'receive signal',
    )
    expect(lines(checkFacts(standard, facts))).toEqual([])
    expect(unreadSignals(facts).map(({ seq }) => seq)).toEqual([15])
  })

  it('is judged only after a repair that states the job', () => {
    const facts = story()
    const job = fold(facts) as Job
    const repair = { trigger: 'repair', operator: 'ann', note: 'lost', rebased: job } as const
    const after = append(facts, repair)
    // What was wrong before it is accepted, and signals from before it may be received.
    expect(found(append(alter(after, 6, received(2, 3)), received(5, 15)))).toEqual([])
    const twice = append(append(after, received(5, 15)), received(6, 15))
    expect(found(twice)).toEqual([
      'P18 at 18: the wait signal "approval" 6 received the signal of fact 15 a second time',
    ])
    // What the job waits for is not known after it: any signal may wake it.
    const rebased = { ...job, state: 'waiting' }
    const waiting = append(facts, { ...repair, to: 'waiting', rebased })
    const signal = { trigger: 'signal', signal: { name: 'a', key: 'k' } } as const
    expect(found(append(waiting, { ...signal, to: 'queued' }))).toEqual([])
    expect(found(append(waiting, signal))).toEqual([])
  })
})

describe('P18 reports', () => {
  it.each<[what: string, seq: number, change: Partial<Fact>, reports: string[]]>([
    [
      'a signal that two waits received',
      6,
      received(2, 3),
      [
        'P18 at 6: the wait signal "approval" 2 received the signal of fact 3 a second time',
        'P18 at 10: the wait signal "approval" 3 timed out, and the signal of fact 4 was there',
        'P18 at 14: the wait signal "approval" 4 received fact 12, and fact 4 was sent before',
      ],
    ],
    [
      'a signal that was received before an older one',
      5,
      received(1, 4),
      [
        'P18 at 5: the wait signal "approval" 1 received fact 4, and fact 3 was sent before',
        'P18 at 6: the wait signal "approval" 2 received the signal of fact 4 a second time',
        'P18 at 10: the wait signal "approval" 3 timed out, and the signal of fact 3 was there',
        'P18 at 14: the wait signal "approval" 4 received fact 12, and fact 3 was sent before',
      ],
    ],
    [
      'a signal that was received before it was sent',
      14,
      received(4, 15),
      [
        'P18 at 14: the wait signal "approval" 4 received fact 15, which is not a signal that ' +
          'was sent to it before',
      ],
    ],
    [
      'a receipt of what is no signal',
      14,
      received(4, 9),
      [
        'P18 at 14: the wait signal "approval" 4 received fact 9, which is not a signal that ' +
          'was sent to it before',
      ],
    ],
    [
      'a receipt of a signal of another name',
      14,
      { received: { for: 'signal', name: 'payment', n: 4, signal: 12 } },
      [
        'P18 at 14: the wait signal "payment" 4 received fact 12, which is not a signal that ' +
          'was sent to it before',
      ],
    ],
    [
      'a wait that is over twice',
      14,
      received(3, 12),
      ['P18 at 14: the wait signal "approval" 3 was over twice'],
    ],
    [
      'a sleep that received a signal',
      14,
      { received: { for: 'sleep', name: 'approval', n: 4, signal: 12 } },
      ['P18 at 14: the wait sleep "approval" 4 is not for signals and received one'],
    ],
    [
      'a time-out although the signal was there',
      5,
      received(1),
      [
        'P18 at 5: the wait signal "approval" 1 timed out, and the signal of fact 3 was there',
        'P18 at 6: the wait signal "approval" 2 received fact 4, and fact 3 was sent before',
        'P18 at 10: the wait signal "approval" 3 timed out, and the signal of fact 3 was there',
        'P18 at 14: the wait signal "approval" 4 received fact 12, and fact 3 was sent before',
      ],
    ],
    [
      'a wait that timed out before its time',
      7,
      { wait: wait(3, Date.UTC(2030, 0, 1)) },
      ['P18 at 10: the wait signal "approval" 3 ended before its time'],
    ],
    [
      'a wait without an end that timed out',
      7,
      { wait: wait(3) },
      ['P18 at 10: the wait signal "approval" 3 ended before its time'],
    ],
    [
      'two signals of one name and key',
      4,
      { signal: { name: 'approval', key: 'k1' } },
      ['P18 at 4: the signal ["approval","k1"] was kept twice'],
    ],
    [
      'a signal that did not wake the job that waits for it',
      12,
      { to: 'waiting' },
      ['P18 at 12: the signal ["approval","k3"] did not wake the job that waits for it'],
    ],
    [
      'a signal that woke a job that waits for another',
      11,
      { wait: { ...wait(4), name: 'payment' } },
      ['P18 at 12: the signal ["approval","k3"] woke a job that does not wait for it'],
    ],
    [
      'a signal that woke a job that sleeps',
      11,
      { wait: { for: 'sleep', name: 'approval', n: 4, until: 5 } },
      ['P18 at 12: the signal ["approval","k3"] woke a job that does not wait for it'],
    ],
    [
      'a signal that moved a job from another state',
      3,
      { to: 'queued' },
      ['P18 at 3: the signal ["approval","k1"] woke a job that does not wait for it'],
    ],
  ])('%s', (_what, seq, change, reports) => {
    expect(found(alter(story(), seq, change))).toEqual(reports)
  })

  it('facts that cannot be read', () => {
    const broken = alter(story(), 3, { signal: null as never })
    expect(found(broken)).toEqual([expect.stringContaining('P18 at 0: cannot be checked')])
  })
})
