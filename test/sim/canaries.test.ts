// The tester tested: bugs that were planted on purpose; see sim/canaries.ts.
import { expect, it } from 'vitest'
import { runProgram } from './program.ts'

it('every planted bug is caught, by the promise that it breaks', async () => {
  const { stdout, stderr } = await runProgram('sim/canary-main.js', ['--json'])
  const { total, caught, canaries } = JSON.parse(stdout) as {
    total: number
    caught: number
    canaries: { name: string; caught: boolean }[]
  }
  const missed = canaries.filter(({ caught }) => !caught).map(({ name }) => name)
  expect(missed, stderr).toEqual([])
  expect(caught).toBe(total)
  expect(total).toBeGreaterThanOrEqual(20)
}, 2_400_000)
