// Every two verbs, on jobs in every place that a job can be in, begun and continued in orders that a
// scheduler chooses: from two processes on one file, or from one process that writes for both.
//
// PAWL_TEST_INTERLEAVINGS=<n> plays each pair n times, in all lifecycles.
import fc from 'fast-check'
import { LIFECYCLES, leased, standard } from 'pawl'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SCENES } from './scenes.ts'
import { SqliteStage } from './sqlite-stage.ts'
import { VERB_NAMES, type VerbName } from './verbs.ts'

const asked = Number(process.env.PAWL_TEST_INTERLEAVINGS ?? 0)
const lifecycles = asked > 0 ? LIFECYCLES : [standard, leased]
const runs = Math.max(1, asked)

const pairs = VERB_NAMES.flatMap((one, i): [VerbName, VerbName][] =>
  VERB_NAMES.slice(i).map((other) => [one, other]),
)

let stage: SqliteStage
beforeAll(async () => {
  stage = await SqliteStage.open(LIFECYCLES)
})
afterAll(() => stage.close())

describe.each(lifecycles)('in the lifecycle $name', (lifecycle) => {
  it.each(SCENES)('any two verbs keep the promises on jobs that are %s', async (scene) => {
    const orders = new Set<string>()
    for (const verbs of pairs) {
      const property = fc.asyncProperty(fc.boolean(), fc.scheduler(), async (together, s) => {
        expect(await stage.play({ scene, lifecycle, together }, verbs, s)).toEqual([])
        orders.add(`${verbs} ${s.report().map(({ label }) => label)}`)
      })
      await fc.assert(property, { numRuns: runs })
    }
    expect(orders.size).toBeGreaterThanOrEqual(pairs.length)
  }, 600_000)
})
