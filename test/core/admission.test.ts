import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  debouncedUntil,
  decideRate,
  decideSingleton,
  isFresh,
  isLive,
  NO_COUNTS,
  type RateCounts,
  readCounts,
  type SeenJob,
  writeCounts,
} from '../../src/core/admission.ts'
import type { Job } from '../../src/core/job/job.ts'
import type { Lane } from '../../src/core/job/lanes.ts'

/** The times at which jobs were accepted, of those that asked after each pause. */
function play(rule: { limit: number; periodMs: number }, pauses: readonly number[]): number[] {
  let counts = NO_COUNTS
  let now = 1_700_000_000_000
  const accepted: number[] = []
  for (const pause of pauses) {
    now += pause
    const decision = decideRate(counts, rule, now)
    if (decision.isFree) {
      accepted.push(now)
      counts = readCounts(writeCounts(decision.counts))
      expect(decision.until).toBeGreaterThan(now + rule.periodMs - 1)
      expect(counts.slices.length).toBeLessThanOrEqual(103)
    } else {
      expect(decideRate(counts, rule, now + decision.retryAfterMs - 1).isFree).toBe(false)
      expect(decideRate(counts, rule, now + decision.retryAfterMs).isFree).toBe(true)
    }
  }
  return accepted
}

describe('a rate limit', () => {
  it('holds in every window, and uses most of what it allows', () => {
    fc.assert(
      fc.property(
        fc.record({
          limit: fc.integer({ min: 1, max: 9 }),
          periodMs: fc.integer({ min: 1, max: 5000 }),
        }),
        fc.array(fc.integer({ min: 0, max: 700 }), { minLength: 1, maxLength: 120 }),
        (rule, pauses) => {
          const accepted = play(rule, pauses)
          for (const from of accepted) {
            const end = from + rule.periodMs
            const within = accepted.filter((at) => at >= from && at < end)
            expect(within.length).toBeLessThanOrEqual(rule.limit)
          }
          expect(accepted.length).toBeGreaterThanOrEqual(Math.min(rule.limit, pauses.length))
        },
      ),
    )
  })

  it('is not freed by a clock that was set back', () => {
    const rule = { limit: 1, periodMs: 1000 }
    const first = decideRate(NO_COUNTS, rule, 10_000)
    const counts = first.isFree ? first.counts : NO_COUNTS
    const back = decideRate(counts, rule, 5000)
    expect(back).toEqual({ isFree: false, retryAfterMs: 6010 })
  })

  it('counts jobs of another period as if they came at the end of their slice', () => {
    const before: RateCounts = {
      sliceMs: 1000,
      slices: [
        [0, 2],
        [1000, 1],
      ],
    }
    const decision = decideRate(before, { limit: 1, periodMs: 500 }, 2000)
    expect(decision.isFree).toBe(false)
    expect(decideRate(before, { limit: 1, periodMs: 500 }, 2505).isFree).toBe(true)
    const joined = decideRate(
      {
        sliceMs: 1,
        slices: [
          [5, 1],
          [7, 1],
        ],
      },
      { limit: 9, periodMs: 1000 },
      9,
    )
    expect(joined).toMatchObject({ counts: { sliceMs: 10, slices: [[0, 3]] } })
  })

  it('waits for as many slices as a lowered limit needs', () => {
    const before: RateCounts = {
      sliceMs: 10,
      slices: [
        [0, 1],
        [100, 1],
        [200, 1],
      ],
    }
    expect(decideRate(before, { limit: 1, periodMs: 1000 }, 300)).toEqual({
      isFree: false,
      retryAfterMs: 910,
    })
    // A limit of nothing never frees; such a rule is refused before it comes here.
    expect(decideRate(NO_COUNTS, { limit: 0, periodMs: 1000 }, 300).isFree).toBe(false)
  })

  it('takes a damaged text for no counts', () => {
    for (const text of [
      null,
      '',
      'null',
      '{}',
      '{"sliceMs":0,"slices":[]}',
      '[]',
      '{"sliceMs":1,"slices":[[1]]}',
      '{"sliceMs":1,"slices":[1]}',
      '{"sliceMs":1,"slices":[[1,"a"]]}',
    ]) {
      expect(readCounts(text)).toEqual(NO_COUNTS)
    }
  })
})

describe('a debounced job', () => {
  it('is due after silence, but never after its time-out', () => {
    const rule = { periodMs: 100, timeoutMs: 250 }
    expect(debouncedUntil(rule, 1000, 1000)).toBe(1100)
    expect(debouncedUntil(rule, 1000, 1140)).toBe(1240)
    expect(debouncedUntil(rule, 1000, 1200)).toBe(1250)
  })
})

describe('a singleton', () => {
  const seen = (lane: Lane, attempt = 0): SeenJob => ({ lane, job: { attempt } as Job })
  const running = seen('held', 1)

  it('counts jobs that have neither ended nor are parked', () => {
    expect([seen('ready'), running, seen('delivering', 1)].every(isLive)).toBe(true)
    expect([undefined, seen('ended'), seen('parked')].some(isLive)).toBe(false)
    expect([isFresh(seen('waiting')), isFresh(running), isFresh(undefined)]).toEqual([
      true,
      false,
      false,
    ])
  })

  it.each([
    ['skip', undefined, undefined, 'create'],
    ['skip', seen('ended', 1), undefined, 'create'],
    ['skip', seen('parked', 1), undefined, 'create'],
    ['skip', seen('ready'), undefined, 'skip'],
    ['cancel', seen('ready'), undefined, 'cancel'],
    ['cancel', seen('ended', 1), undefined, 'create'],
    ['latest', seen('ready'), undefined, 'replace job'],
    ['latest', running, undefined, 'create next'],
    ['latest', running, seen('waiting'), 'replace next'],
    ['latest', running, seen('ended'), 'create next'],
  ] as const)('in mode %s', (mode, job, next, expected) => {
    expect(decideSingleton(mode, job, next)).toBe(expected)
  })
})
