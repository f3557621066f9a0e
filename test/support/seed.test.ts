import fc from 'fast-check'
import { expect, it } from 'vitest'
import { seedOf, testSeed } from './seed.ts'

it('properties draw the same values in every run, from the seed of the tests', () => {
  const drawn: number[] = []
  const details = fc.check(fc.property(fc.nat(), (value) => void drawn.push(value)))
  expect(details.seed).toBe(testSeed)
  expect(drawn).toEqual(fc.sample(fc.nat(), { seed: testSeed, numRuns: drawn.length }))
})

it('tests that play several histories have seeds of their own for each', () => {
  expect(Number.isSafeInteger(testSeed)).toBe(true)
  expect(seedOf(2)).toBe(seedOf(1) + 1)
})
