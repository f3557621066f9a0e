// The engine under faults, in virtual time; see sim/engine.ts. PAWL_TEST_SEEDS plays more seeds.
import { describe, expect, it } from 'vitest'
import { type SimResult, simulate } from '../sim/engine.ts'

const SEEDS = Number(process.env.PAWL_TEST_SEEDS ?? 200)

describe('the engine under crashes, pauses, wrong clocks, lost and repeated calls', () => {
  const results: SimResult[] = []

  it('keeps every promise, and every job comes out once all is well again', async () => {
    for (let seed = 1; seed <= SEEDS; seed++) results.push(await simulate(seed))
    const broken = results.filter(({ violations }) => violations.length > 0)
    expect(broken.map(({ seed, violations }) => ({ seed, violations }))).toEqual([])
  }, 300_000)

  it('meets every kind of fault, and most jobs succeed all the same', () => {
    const faults = new Set(results.flatMap((result) => Object.keys(result.faults)))
    expect([...faults].sort()).toEqual(
      ['cancel', 'clock', 'crash', 'duplicate', 'lost-reply', 'pause', 'refused'].sort(),
    )
    const succeeded = results.reduce((sum, { outcomes }) => sum + (outcomes.succeeded ?? 0), 0)
    expect(succeeded).toBeGreaterThan(results.length * 6)
  })

  it('plays the same history for the same seed', async () => {
    const [one, two] = [await simulate(7), await simulate(7)]
    expect(two).toEqual(one)
  })
})
