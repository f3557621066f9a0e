/** The rules of limits: names of gates, what a gate allows, and windows of throttles. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Candidate,
  close,
  type Gate,
  grant,
  isIdle,
  type LimitSetting,
  LOOK_AGAIN_MS,
  MOVES_MAX,
  maxOf,
  newGate,
  open,
  rateOf,
  release,
  roomOf,
} from '../../src/core/limits/gates.ts'
import {
  compareGates,
  concurrency,
  gateFault,
  gateName,
  isQueueGate,
  isRate,
  limitKeys,
  limitOf,
  parseGate,
  readKeys,
  writeKeys,
} from '../../src/core/limits/keys.ts'
import {
  allowed,
  defaultBurst,
  type Rate,
  startAt,
  tatAfter,
  unitTime,
} from '../../src/core/limits/throttle.ts'

const NOW = 1_000_000

function setting(name: string, more: Partial<LimitSetting> = {}): LimitSetting {
  return { name, max: null, periodMs: null, burst: null, override: null, ...more }
}

function settings(...all: LimitSetting[]): ReadonlyMap<string, LimitSetting> {
  return new Map(all.map((one) => [one.name, one]))
}

function gates(...all: Gate[]): ReadonlyMap<string, Gate> {
  return new Map(all.map((one) => [one.key, one]))
}

const of = (...names: string[]): Candidate => ({
  createdAt: NOW,
  keys: names.map((gate) => ({ gate })),
})

describe('names of gates', () => {
  it('are read as they were written, whatever the parts contain', () => {
    const part = fc.string({ minLength: 1 }).filter((text) => !/\p{Cc}|\p{Surrogate}/u.test(text))
    fc.assert(
      fc.property(part, part, part, (type, name, key) => {
        const gate = gateName('job', type, name, key)
        expect(parseGate(gate)).toEqual({
          kind: 'job',
          limit: gateName('job', type, name),
          names: [type, name],
          key,
        })
        expect(gateFault(gate)).toBeUndefined()
        expect(readKeys(writeKeys([{ gate, max: 3 }]))).toEqual([{ gate, max: 3 }])
      }),
    )
  })

  it('of different parts are different', () => {
    expect(gateName('shared', 'a', 'b')).not.toBe(gateName('shared', 'a/b'))
    expect(gateName('shared', 'a%2Fb')).not.toBe(gateName('shared', 'a/b'))
  })

  it('name a limit with its key left out', () => {
    expect(limitOf('shared/github/acme')).toBe('shared/github')
    expect(limitOf('job/sync/tenant/acme')).toBe('job/sync/tenant')
    expect(limitOf('rate/sync/calls')).toBe('rate/sync/calls')
    expect(limitOf('nothing')).toBe('nothing')
    expect(parseGate('type/a')).toEqual({ kind: 'type', limit: 'type/a', names: ['a'] })
  })

  it('that nobody makes are refused', () => {
    for (const bad of [
      '',
      'a',
      'shared',
      'shared/a/b/c',
      'job/a',
      'toString/a',
      'shared/',
      'shared/a b',
    ]) {
      expect(gateFault(bad), bad).toBeTypeOf('string')
    }
    expect(gateFault(7 as never)).toBeTypeOf('string')
    expect(gateFault(`shared/${'x'.repeat(600)}`)).toMatch(/600/)
  })

  it('are sorted with those of queues first', () => {
    const sorted = ['type/a', 'queue/b', 'job/a/b/c', 'queue/a', 'job/a/b/c'].sort(compareGates)
    expect(sorted).toEqual(['queue/a', 'queue/b', 'job/a/b/c', 'job/a/b/c', 'type/a'])
    expect([isRate('rate/a/b'), isRate('type/a')]).toEqual([true, false])
    expect([isQueueGate('queue/a'), isQueueGate('type/a')]).toEqual([true, false])
  })
})

describe('the keys of a job', () => {
  it('are one text, sorted', () => {
    expect(writeKeys([])).toBeNull()
    const keys = [
      { gate: 'shared/b' },
      { gate: 'rate/t/r', units: 7 },
      { gate: 'job/t/a/k', max: 2 },
    ]
    expect(writeKeys(keys)).toBe('job/t/a/k=2 rate/t/r+7 shared/b')
    expect(readKeys(writeKeys(keys))).toEqual([keys[2], keys[1], keys[0]])
    expect(readKeys(null)).toEqual([])
    expect(readKeys(' =5  shared/a')).toEqual([{ gate: 'shared/a' }])
  })

  it('are checked', () => {
    expect(
      limitKeys([
        { gate: 'shared/a', max: 1 },
        { gate: 'rate/t/r', units: 2 },
      ]),
    ).toBeUndefined()
    expect(limitKeys([{ gate: 'queue/a' }])).toMatch(/queue/)
    expect(limitKeys([{ gate: 'shared/a', units: 1 }])).toMatch(/units/)
    expect(limitKeys([{ gate: 'rate/t/r', max: 1 }])).toMatch(/maximum/)
    expect(limitKeys([{ gate: 'a' }])).toBeTypeOf('string')
    expect(limitKeys([{ gate: 'shared/a' }, { gate: 'shared/a' }])).toMatch(/repeat/)
    expect(concurrency(0)).toBeUndefined()
    expect(concurrency(-1)).toBeTypeOf('string')
  })
})

describe('what a gate allows', () => {
  const key = 'job/sync/tenant/acme'
  const limit = 'job/sync/tenant'

  it("is the operator's number for the key, for the limit, the job's number, the code's", () => {
    const gate = { ...newGate(key), asked: 3 }
    const code = setting(limit, { max: 4 })
    expect(maxOf(newGate(key), settings())).toBe(Number.POSITIVE_INFINITY)
    expect(maxOf(newGate(key), settings(code))).toBe(4)
    expect(maxOf(gate, settings(code))).toBe(3)
    expect(maxOf(gate, settings({ ...code, override: 2 }))).toBe(2)
    const own = setting(key, { override: 0 })
    expect(maxOf(gate, settings({ ...code, override: 2 }, own))).toBe(0)
  })

  it('is granted in order, and the rest is blocked by the first gate without room', () => {
    const inForce = settings(setting('shared/a', { max: 2 }), setting('shared/b', { max: 1 }))
    const candidates = [
      of('shared/a', 'shared/b'),
      of('shared/a', 'shared/b'),
      of('shared/a'),
      of(),
    ]
    const decided = grant(candidates, gates(newGate('shared/a'), newGate('shared/b')), inForce, NOW)
    expect(decided.grants).toEqual([
      { kind: 'granted', slots: ['shared/a', 'shared/b'] },
      { kind: 'blocked', by: 'shared/b' },
      { kind: 'granted', slots: ['shared/a'] },
      { kind: 'granted', slots: [] },
    ])
    expect(decided.gates.get('shared/a')).toMatchObject({ used: 2, waiting: false })
    expect(decided.gates.get('shared/b')).toMatchObject({ used: 1, waiting: true, openAt: null })
  })

  it('counts the gate of the queue first', () => {
    const inForce = settings(setting('queue/q', { max: 1 }))
    const candidates = [of('shared/a'), of()].map((one) => ({ ...one, queueGate: 'queue/q' }))
    expect(grant(candidates, new Map(), inForce, NOW).grants).toEqual([
      { kind: 'granted', slots: ['queue/q', 'shared/a'] },
      { kind: 'blocked', by: 'queue/q' },
    ])
  })

  it('takes the number of the newest job', () => {
    const ask = (createdAt: number, max: number) => ({ createdAt, keys: [{ gate: key, max }] })
    const inForce = settings(setting(limit))
    const first = grant([ask(5, 1), ask(7, 3), ask(6, 9)], new Map(), inForce, NOW)
    expect(first.gates.get(key)).toMatchObject({ asked: 3, askedAt: 7, used: 3 })
    const older = grant([ask(6, 9)], first.gates, inForce, NOW)
    expect(older.gates.get(key)).toMatchObject({ asked: 3, askedAt: 7, waiting: true })
  })

  it('never exceeds it, whatever is asked for and given back', () => {
    const action = fc.oneof(
      fc.record({ claim: fc.nat({ max: 6 }) }),
      fc.record({ stop: fc.nat({ max: 6 }) }),
      fc.record({ max: fc.nat({ max: 5 }) }),
    )
    fc.assert(
      fc.property(fc.array(action, { maxLength: 40 }), (actions) => {
        let max = 3
        let gate = newGate('shared/a')
        for (const one of actions) {
          const inForce = settings(setting('shared/a', { max }))
          const before = gate.used
          if ('max' in one) max = one.max
          else if ('stop' in one) {
            const stopped = Math.min(one.stop, gate.used)
            gate = release(gate, stopped, inForce, NOW).gate
            expect(gate.used).toBe(before - stopped)
          } else {
            const asked = Array.from({ length: one.claim }, () => of('shared/a'))
            gate = grant(asked, gates(gate), inForce, NOW).gates.get('shared/a') as Gate
            expect(gate.used).toBe(Math.max(before, Math.min(before + one.claim, max)))
          }
        }
      }),
    )
  })
})

describe('a gate that blocks jobs', () => {
  const inForce = settings(setting('shared/a', { max: 3 }))
  const full: Gate = { ...newGate('shared/a'), used: 3, waiting: true }

  it('has as many made ready as there is room for, when one stops', () => {
    const freed = release(full, 2, inForce, NOW)
    expect(freed.moves).toBe(2)
    expect(freed.gate).toMatchObject({ used: 1, openAt: NOW + LOOK_AGAIN_MS })
    expect(release({ ...full, waiting: false }, 2, inForce, NOW)).toMatchObject({
      moves: 0,
      gate: { used: 1, openAt: null },
    })
    expect(release({ ...full, used: 9 }, 2, inForce, NOW)).toMatchObject({
      moves: 0,
      gate: { used: 7, openAt: null },
    })
    expect(release(full, 99, inForce, NOW).gate.used).toBe(0)
  })

  it('is looked at again, and then a page of jobs is made ready', () => {
    const waiting = { ...full, used: 1, openAt: NOW }
    expect(open(waiting, inForce, NOW)).toEqual({
      moves: MOVES_MAX,
      gate: { ...waiting, openAt: NOW + LOOK_AGAIN_MS },
    })
    expect(open({ ...full, openAt: NOW }, inForce, NOW)).toMatchObject({
      moves: 0,
      gate: { openAt: null },
    })
    expect(roomOf({ ...full, used: 0 }, settings(), NOW)).toBe(MOVES_MAX)
  })

  it('keeps the time of its look while there is room', () => {
    const waiting = { ...full, used: 1, openAt: NOW + 5 }
    const decided = grant([of('shared/a')], gates(waiting), inForce, NOW)
    expect(decided.gates.get('shared/a')).toMatchObject({ used: 2, openAt: NOW + 5 })
    const again = grant([of('shared/a')], decided.gates, inForce, NOW)
    expect(again.gates.get('shared/a')).toMatchObject({ used: 3, openAt: null })
    const unseen = grant([of('shared/a')], gates({ ...waiting, openAt: null }), inForce, NOW)
    expect(unseen.gates.get('shared/a')).toMatchObject({ openAt: NOW + LOOK_AGAIN_MS })
    const empty = grant([of('shared/a')], gates({ ...waiting, waiting: false }), inForce, NOW)
    expect(empty.gates.get('shared/a')).toMatchObject({ openAt: null })
  })

  it('says nothing any more when nothing runs, waits or is to be paid for', () => {
    expect(isIdle(newGate('shared/a'), NOW)).toBe(true)
    expect(isIdle(full, NOW)).toBe(false)
    expect(isIdle({ ...newGate('rate/a/b'), tat: NOW * 1000 }, NOW)).toBe(true)
    expect(isIdle({ ...newGate('rate/a/b'), tat: NOW * 1000 + 1 }, NOW)).toBe(false)
    expect(isIdle({ ...newGate('rate/a/b'), closedUntil: NOW + 1 }, NOW)).toBe(false)
    expect(isIdle({ ...newGate('shared/a'), waiting: true }, NOW)).toBe(false)
  })
})

describe('a throttle', () => {
  const key = 'rate/t/r'
  const inForce = settings(setting(key, { max: 10, periodMs: 1000, burst: 2 }))

  it('lets a burst start and then spaces the rest', () => {
    const decided = grant([of(key), of(key), of(key)], new Map(), inForce, NOW)
    expect(decided.grants.map(({ kind }) => kind)).toEqual(['granted', 'granted', 'blocked'])
    const gate = decided.gates.get(key) as Gate
    expect(gate).toMatchObject({ waiting: true, openAt: NOW + 112, closedUntil: NOW + 112 })
    expect(roomOf(gate, inForce, NOW)).toBe(0)
    expect(open(gate, inForce, NOW + 112)).toMatchObject({
      moves: 1,
      gate: { openAt: NOW + 112 + LOOK_AGAIN_MS },
    })
    expect(open(gate, inForce, NOW + 10_000).moves).toBe(2)
  })

  it('keeps jobs back until those that wait were made ready', () => {
    const waiting: Gate = { ...newGate(key), waiting: true, openAt: NOW }
    const blocked = grant([of(key)], gates(waiting), inForce, NOW)
    expect(blocked.grants).toEqual([{ kind: 'blocked', by: key }])
    const opened = open(waiting, inForce, NOW)
    const granted = grant([of(key)], gates(opened.gate), inForce, NOW)
    expect(granted.grants).toEqual([{ kind: 'granted', slots: [] }])
    expect(granted.gates.get(key)?.openAt).toBe(NOW + LOOK_AGAIN_MS)
  })

  it('lets nobody overtake a job that takes many units', () => {
    const heavy = { createdAt: NOW, keys: [{ gate: key, units: 10 }] }
    const spent = grant([of(key)], new Map(), inForce, NOW).gates
    const decided = grant([heavy, of(key)], spent, inForce, NOW)
    expect(decided.grants.map(({ kind }) => kind)).toEqual(['blocked', 'blocked'])
    const { closedUntil } = decided.gates.get(key) as Gate
    expect(closedUntil).toBe(NOW + 1001)
  })

  it('that was never declared lets all pass, until it is closed', () => {
    const gate = close({ ...newGate(key), waiting: true }, NOW + 50)
    expect(close(gate, NOW + 20).closedUntil).toBe(NOW + 50)
    expect(grant([of(key)], new Map(), settings(), NOW).grants[0]?.kind).toBe('granted')
    expect(grant([of(key)], gates(gate), settings(), NOW).grants[0]?.kind).toBe('blocked')
    expect(release(gate, 0, settings(), NOW)).toMatchObject({
      moves: 0,
      gate: { openAt: NOW + 50 },
    })
    expect(roomOf(gate, settings(), NOW + 50)).toBe(MOVES_MAX)
    expect(rateOf(gate, settings(setting(key)))).toBeUndefined()
    expect(rateOf({ key: 'shared/a' }, settings(setting('shared/a')))).toBeUndefined()
    expect(rateOf(gate, settings(setting(key, { max: 1 })))).toBeUndefined()
    expect(rateOf(gate, settings(setting(key, { max: 1, periodMs: 1 })))).toBeUndefined()
  })

  it('has a burst of a tenth of its limit', () => {
    expect([1, 9, 10, 95].map(defaultBurst)).toEqual([1, 1, 1, 9])
    expect(unitTime({ limit: 10, periodMs: 1000, burst: 1 })).toBe(100_000)
    expect(allowed({ limit: 10, periodMs: 1000, burst: 2 }, null, NOW)).toBe(2)
    expect(startAt({ limit: 10, periodMs: 1000, burst: 2 }, null, 10)).toBe(0)
  })

  it('starts at most `limit` units in every half-open window of its period', () => {
    const cases = fc.integer({ min: 1, max: 60 }).chain((limit) =>
      fc.record({
        limit: fc.constant(limit),
        burst: fc.integer({ min: 1, max: limit }),
        periodMs: fc.integer({ min: 1, max: 2000 }),
        jobs: fc.array(
          fc.record({
            units: fc.integer({ min: 1, max: limit }),
            waitMs: fc.oneof(fc.constant(0), fc.nat({ max: 500 })),
          }),
          { minLength: 1, maxLength: 80 },
        ),
      }),
    )
    fc.assert(
      fc.property(cases, ({ jobs, ...rate }) => {
        const starts = startsOf(rate, jobs)
        for (const { at } of starts) {
          const inWindow = starts.filter((one) => one.at >= at && one.at < at + rate.periodMs)
          const units = inWindow.reduce((sum, one) => sum + one.units, 0)
          expect(units).toBeLessThanOrEqual(rate.limit)
        }
      }),
      { numRuns: 500 },
    )
  })

  it('reaches the rate that it promises if there is always something to start', () => {
    const rate = { limit: 100, periodMs: 1000, burst: 10 }
    const jobs = Array.from({ length: 1000 }, () => ({ units: 1, waitMs: 0 }))
    const starts = startsOf(rate, jobs)
    const lastAt = (starts.at(-1) as { at: number }).at - NOW
    expect(lastAt).toBeLessThan((1000 / 91) * 1000 + 100)
  })
})

/** Plays jobs that come one after the other; each starts as soon as the rule lets it. */
function startsOf(rate: Rate, jobs: readonly { units: number; waitMs: number }[]) {
  let now = NOW
  let tat: number | null = null
  return jobs.map(({ units, waitMs }) => {
    now = Math.max(now + waitMs, startAt(rate, tat, units))
    tat = tatAfter(rate, tat, units, now)
    return { at: now, units }
  })
}
