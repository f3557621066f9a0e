// The engine under faults, in virtual time; see sim/world.ts. PAWL_TEST_SEEDS plays more seeds.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { FAULT_KINDS } from '../../sim/faults.ts'
import { simulate } from '../../sim/world.ts'
import { thorough } from '../support/extent.ts'
import { seedOf } from '../support/seed.ts'
import { runProgram } from './program.ts'

const SEEDS = Number(process.env.PAWL_TEST_SEEDS ?? thorough(80, 500))

describe('the engine under every kind of fault', () => {
  it('keeps every promise, and every job comes to its end once all is well', async () => {
    const args = [
      '--from',
      String(seedOf(1)),
      '--seeds',
      String(SEEDS),
      '--parallel',
      '2',
      '--json',
    ]
    const { code, stdout, stderr } = await runProgram('sim/main.js', args)
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
    const summary = JSON.parse(stdout) as {
      seeds: number
      violations: number
      faults: Record<string, number>
      outcomes: Record<string, number>
      runEvents: number
      ticks: number
      groupStarts: number
      signals: number
      released: number
      overtakings: number
      keysMet: number
      blockedLate: number
    }
    expect(summary).toMatchObject({ seeds: SEEDS, violations: 0 })
    // A run in which nothing went wrong, or nothing went well, would prove nothing.
    expect(Object.keys(summary.faults).sort()).toEqual([...FAULT_KINDS].sort())
    expect(FAULT_KINDS.length).toBeGreaterThanOrEqual(28)
    const absent = Object.entries(summary.faults).filter(([, count]) => count === 0)
    // Some kinds are too rare for the few histories of `npm test`; `npm run prove` meets them all.
    expect(absent.length).toBeLessThanOrEqual(thorough(3, 0))
    const ended = Object.values(summary.outcomes).reduce((sum, count) => sum + count, 0)
    expect((summary.outcomes.succeeded ?? 0) / ended).toBeGreaterThan(0.7)
    expect(summary.runEvents).toBeGreaterThan(SEEDS * 2)
    expect(summary.ticks).toBeGreaterThan(SEEDS)
    expect(summary.groupStarts).toBeGreaterThan(SEEDS)
    expect(summary.signals).toBeGreaterThan(SEEDS / 2)
    expect(summary.released).toBeGreaterThan(SEEDS / 4)
    expect(summary.overtakings).toBeGreaterThan(SEEDS / 10)
    expect(summary.keysMet).toBeGreaterThan(SEEDS / 10)
    expect(summary.blockedLate).toBeGreaterThan(0)
  }, 1_800_000)

  it('plays the same history for the same seed, event by event', async () => {
    const [one, two] = [await simulate(7, { trace: true }), await simulate(7, { trace: true })]
    expect(one.trace.length).toBeGreaterThan(20)
    expect(two).toEqual(one)
  })

  it('keeps every promise in the seeds that once found a defect', async () => {
    const lines = readFileSync('sim/seeds.txt', 'utf8').split('\n')
    const seeds = lines.filter((line) => /^\d/.test(line)).map((line) => Number.parseInt(line, 10))
    expect(seeds.length).toBeGreaterThan(0)
    for (const seed of seeds) expect((await simulate(seed)).violations).toEqual([])
  }, 120_000)
})
