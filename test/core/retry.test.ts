import fc from 'fast-check'
import {
  DEFAULT_POLICY,
  DefinitionInvalid,
  type JobPolicy,
  type PolicyOverrides,
  policyFor,
  type RetryPolicy,
  retryDelayBounds,
  retryDelayMs,
  standard,
} from 'pawl/rules'
import { SeededRandom } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { DEFAULT_RETRY, DELAY_MAX_MS, mergePolicy } from '../../src/core/retry.ts'

const YEAR_MS = 31_622_400_000

const fixed: RetryPolicy = {
  max: 10,
  backoff: 'fixed',
  delayMs: 1000,
  factor: 2,
  delayMaxMs: 60_000,
  jitter: 0,
}
const exponential: RetryPolicy = { ...fixed, backoff: 'exponential' }

const delays = (policy: RetryPolicy, random: number, count = 8) =>
  Array.from({ length: count }, (_, i) => retryDelayMs(policy, i + 1, random))

describe('the delay before a retry', () => {
  it('is always the same where it is fixed', () => {
    expect(delays(fixed, 0)).toEqual(Array(8).fill(1000))
    // The longest delay and the factor are for delays that grow.
    expect(delays({ ...fixed, delayMs: 90_000, factor: 50 }, 0.9)).toEqual(Array(8).fill(90_000))
  })

  it('grows by its factor up to the longest where it is exponential', () => {
    expect(delays(exponential, 0)).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000])
    expect(delays({ ...exponential, factor: 10 }, 0, 4)).toEqual([1000, 10_000, 60_000, 60_000])
    expect(delays({ ...exponential, factor: 1 }, 0, 3)).toEqual([1000, 1000, 1000])
    expect(delays({ ...exponential, factor: 1.5 }, 0, 3)).toEqual([1000, 1500, 2250])
    expect(delays({ ...exponential, delayMs: 90_000 }, 0, 2)).toEqual([60_000, 60_000])
    expect(retryDelayMs(exponential, 10_000, 0)).toBe(60_000)
  })

  it('is none where none was asked for, however often it has doubled', () => {
    const none = { ...exponential, delayMs: 0, jitter: 1 }
    expect(delays(none, 0.5, 3)).toEqual([0, 0, 0])
    expect(retryDelayMs(none, 2000, 0.5)).toBe(0)
  })

  it('is spread upwards by jitter, never downwards', () => {
    expect(delays({ ...fixed, jitter: 1 }, 0, 2)).toEqual([1000, 1000])
    expect(delays({ ...fixed, jitter: 1 }, 0.5, 2)).toEqual([1500, 1500])
    expect(delays({ ...fixed, jitter: 0.2 }, 0.5, 2)).toEqual([1100, 1100])
    expect(delays({ ...exponential, jitter: 0.5 }, 0.5, 3)).toEqual([1250, 2500, 5000])
    // Jitter is added to the longest delay too: a crowd that waits longest must spread as well.
    expect(retryDelayMs({ ...exponential, jitter: 1 }, 9, 0.5)).toBe(90_000)
  })

  it('is spread over a longer window the more retries wait already, up to 12 seconds', () => {
    const policy = { ...fixed, jitter: 1 }
    const longest = (ahead: number) => retryDelayMs(policy, 1, 1, ahead)
    expect([0, 10, 50, 120, 100_000].map(longest)).toEqual([2000, 2000, 6000, 13_000, 13_000])
    expect(retryDelayMs(policy, 1, 0, 100_000)).toBe(1000)
    expect(retryDelayMs({ ...policy, jitter: 0.5 }, 1, 1, 120)).toBe(7000)
    // A delay that is longer than the window spreads by itself.
    expect(retryDelayMs({ ...policy, delayMs: 60_000 }, 1, 1, 120)).toBe(120_000)
    // What fixes its delay, or wants none, is not spread.
    expect(retryDelayMs(fixed, 1, 0.9, 120)).toBe(1000)
    expect(retryDelayMs({ ...policy, delayMs: 0 }, 1, 0.9, 120)).toBe(0)
  })

  it('puts at most 15 % of 2,000 failures of one moment into any second', () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer({ min: 1, max: 60_000 }), (seed, delayMs) => {
        const random = new SeededRandom(seed)
        const policy = { ...DEFAULT_RETRY, delayMs }
        const at = Array.from({ length: 2000 }, (_, i) => retryDelayMs(policy, 1, random.next(), i))
        at.sort((a, b) => a - b)
        // The most that lie within any 1,000 ms.
        let busiest = 0
        for (let from = 0, to = 0; to < at.length; to++) {
          while ((at[to] as number) - (at[from] as number) >= 1000) from++
          busiest = Math.max(busiest, to - from + 1)
        }
        expect(busiest / 2000).toBeLessThanOrEqual(0.15)
      }),
      { numRuns: 50 },
    )
  })

  it('is spread evenly over its whole range', () => {
    const random = new SeededRandom(7)
    const policy = { ...fixed, jitter: 1 }
    const buckets = Array<number>(10).fill(0)
    for (let i = 0; i < 2000; i++) {
      const bucket = Math.min(Math.floor((retryDelayMs(policy, 1, random.next()) - 1000) / 100), 9)
      buckets[bucket] = (buckets[bucket] ?? 0) + 1
    }
    for (const filled of buckets) expect(filled).toBeGreaterThan(140)
  })

  it('is a whole number within its bounds, for any policy, retry and random number', () => {
    const policies = fc.record<RetryPolicy>({
      max: fc.nat({ max: 10_000 }),
      backoff: fc.constantFrom('fixed', 'exponential'),
      delayMs: fc.nat({ max: DELAY_MAX_MS }),
      factor: fc.double({ min: 1, max: 100, noNaN: true }),
      delayMaxMs: fc.nat({ max: DELAY_MAX_MS }),
      jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    })
    const randoms = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
    fc.assert(
      fc.property(policies, fc.integer({ min: 1, max: 10_000 }), randoms, (policy, n, random) => {
        const delay = retryDelayMs(policy, n, random, n)
        const { min, max } = retryDelayBounds(policy, n)
        expect(Number.isSafeInteger(delay)).toBe(true)
        expect(delay).toBeGreaterThanOrEqual(min)
        expect(delay).toBeLessThanOrEqual(max)
        expect(max).toBeLessThanOrEqual(Math.max(2 * min, min + 12_000) + 1)
        if (min === 0) expect(max).toBeLessThanOrEqual(1)
        if (policy.backoff === 'fixed') expect(min).toBe(policy.delayMs)
        else expect(min).toBeLessThanOrEqual(policy.delayMaxMs)
      }),
      { numRuns: 1000 },
    )
  })

  it('has the bounds that its policy can give', () => {
    expect(retryDelayBounds({ ...fixed, jitter: 1 }, 1)).toEqual({ min: 1000, max: 13_000 })
    expect(retryDelayBounds({ ...fixed, jitter: 0.25 }, 5)).toEqual({ min: 1000, max: 4000 })
    expect(retryDelayBounds(exponential, 3)).toEqual({ min: 4000, max: 4000 })
  })
})

describe('the default policy', () => {
  it('has the numbers that the documentation names', () => {
    expect(DELAY_MAX_MS).toBe(YEAR_MS)
    expect(DEFAULT_RETRY).toEqual({
      max: 3,
      backoff: 'fixed',
      delayMs: 1000,
      factor: 2,
      delayMaxMs: 3_600_000,
      jitter: 1,
    })
    expect(DEFAULT_POLICY).toEqual({
      retry: DEFAULT_RETRY,
      crashesMax: 3,
      releasesMax: 100,
      recovery: 'automatic',
    })
  })
})

describe('a merged policy', () => {
  it('is the base where nothing is overridden, and leaves the base as it was', () => {
    const before = structuredClone(DEFAULT_POLICY)
    expect(mergePolicy(DEFAULT_POLICY, {})).toEqual(DEFAULT_POLICY)
    expect(mergePolicy(DEFAULT_POLICY, { retry: {} })).toEqual(DEFAULT_POLICY)
    mergePolicy(DEFAULT_POLICY, { retry: { max: 9 }, crashesMax: 9 })
    expect(DEFAULT_POLICY).toEqual(before)
  })

  it('takes one word for the back-off', () => {
    const { retry } = mergePolicy(DEFAULT_POLICY, { retry: 'exponential' })
    expect(retry).toEqual({ ...DEFAULT_RETRY, backoff: 'exponential' })
  })

  it('takes each field that is given, zero included, and keeps the others', () => {
    const base: JobPolicy = {
      retry: { ...exponential, jitter: 0.5 },
      crashesMax: 5,
      releasesMax: 6,
      recovery: 'operator',
    }
    const cases: [PolicyOverrides, object][] = [
      [{ retry: { max: 0 } }, { ...base, retry: { ...base.retry, max: 0 } }],
      [{ retry: { delayMs: 0 } }, { ...base, retry: { ...base.retry, delayMs: 0 } }],
      [{ retry: { jitter: 0 } }, { ...base, retry: { ...base.retry, jitter: 0 } }],
      [{ crashesMax: 0 }, { ...base, crashesMax: 0 }],
      [{ releasesMax: 0 }, { ...base, releasesMax: 0 }],
      [{ recovery: 'automatic' }, { ...base, recovery: 'automatic' }],
    ]
    for (const [overrides, merged] of cases) expect(mergePolicy(base, overrides)).toEqual(merged)
  })

  it('notifies where the job or else its lifecycle says so, and has no such field else', () => {
    const noisy = mergePolicy(DEFAULT_POLICY, { notify: true })
    expect(noisy).toEqual({ ...DEFAULT_POLICY, notify: true })
    expect(mergePolicy(noisy, {})).toEqual(noisy)
    for (const silent of [mergePolicy(noisy, { notify: false }), mergePolicy(DEFAULT_POLICY, {})]) {
      expect(Object.keys(silent)).not.toContain('notify')
    }
  })
})

const notCounts = [-1, 1.5, 10_001, NaN, Infinity, '3', null]
const notDelays = [-1, 0.5, YEAR_MS + 1, NaN, Infinity, '5 s', null]

describe('a policy out of bounds', () => {
  it.each<[string, readonly unknown[], (value: never) => PolicyOverrides]>([
    ['retry.max', notCounts, (max) => ({ retry: { max } })],
    ['retry.backoff', ['linear', '', 'Fixed', 5], (backoff) => ({ retry: { backoff } })],
    ['retry.backoff', ['linear', ''], (word) => ({ retry: word })],
    ['retry.delayMs', notDelays, (delayMs) => ({ retry: { delayMs } })],
    ['retry.delayMaxMs', notDelays, (delayMaxMs) => ({ retry: { delayMaxMs } })],
    ['retry.factor', [0, 0.99, -1, 100.1, NaN, Infinity], (factor) => ({ retry: { factor } })],
    ['retry.jitter', [-0.1, 1.1, NaN, Infinity], (jitter) => ({ retry: { jitter } })],
    ['crashesMax', notCounts.slice(0, -1), (crashesMax) => ({ crashesMax })],
    ['releasesMax', notCounts.slice(0, -1), (releasesMax) => ({ releasesMax })],
    ['recovery', ['manual', '', 1], (recovery) => ({ recovery })],
    ['notify', ['no', '', 0, 1, {}], (notify) => ({ notify })],
  ])('is a definition error that names %s', (what, values, override) => {
    for (const value of values) {
      const merge = () => mergePolicy(DEFAULT_POLICY, override(value as never))
      expect(merge).toThrow(DefinitionInvalid)
      expect(merge).toThrow(expect.objectContaining({ details: expect.objectContaining({ what }) }))
    }
  })

  it('is a definition error where a number is given as a text', () => {
    for (const retry of [{ jitter: '0.5' }, { factor: '2' }]) {
      const merge = () => mergePolicy(DEFAULT_POLICY, { retry } as unknown as PolicyOverrides)
      expect(merge).toThrow(DefinitionInvalid)
    }
  })

  it('ends where the bounds begin', () => {
    const accepted: PolicyOverrides[] = [
      { retry: { max: 0 } },
      { retry: { max: 10_000 } },
      { retry: { delayMs: 0 } },
      { retry: { delayMs: YEAR_MS } },
      { retry: { delayMaxMs: 0 } },
      { retry: { delayMaxMs: YEAR_MS } },
      { retry: { factor: 1 } },
      { retry: { factor: 100 } },
      { retry: { jitter: 0 } },
      { retry: { jitter: 1 } },
      { crashesMax: 0 },
      { crashesMax: 10_000 },
      { releasesMax: 0 },
      { releasesMax: 10_000 },
    ]
    for (const overrides of accepted) {
      expect(mergePolicy(DEFAULT_POLICY, overrides)).toMatchObject(overrides)
    }
    expect(policyFor(standard, { crashesMax: 0 }).crashesMax).toBe(0)
  })
})
