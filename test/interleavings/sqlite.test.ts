// Any two verbs, and random threes, on jobs in every place that a job can be in, begun and continued
// in orders that a scheduler chooses: from processes of their own on one file, or from one process
// that writes for several callers. The seed names the orders; a failure shows its order.
//
// PAWL_TEST_INTERLEAVINGS=<n> plays each pair n times, and as many threes, in all lifecycles.
import fc from 'fast-check'
import { LIFECYCLES, type Lifecycle, leased, standard } from 'pawl'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SCENES } from './scenes.ts'
import { SqliteStage } from './sqlite-stage.ts'
import { VERB_NAMES, type VerbName } from './verbs.ts'

const asked = Number(process.env.PAWL_TEST_INTERLEAVINGS ?? 0)
const seed = Number(process.env.PAWL_TEST_SEED ?? 1)
const lifecycles = asked > 0 ? LIFECYCLES : [standard, leased]
const runs = Math.max(1, asked)
const threes = 1000 * runs
const LONG_MS = 3_600_000

const pairs = VERB_NAMES.flatMap((one, i): [VerbName, VerbName][] =>
  VERB_NAMES.slice(i).map((other) => [one, other]),
)
const verb = fc.constantFrom(...VERB_NAMES)
const place = fc.nat({ max: 2 })

let stage: SqliteStage
/** Every order that was played, and every turn that was taken in one. */
const orders = new Set<string>()
const turns = new Set<string>()

beforeAll(async () => {
  stage = await SqliteStage.open(LIFECYCLES)
})
afterAll(() => stage.close())

const interleavings = (
  lifecycle: fc.Arbitrary<Lifecycle>,
  scene: fc.Arbitrary<(typeof SCENES)[number]>,
  verbs: fc.Arbitrary<readonly VerbName[]>,
) =>
  fc.asyncProperty(
    fc.record({ lifecycle, scene, verbs, places: fc.tuple(place, place, place) }),
    fc.scheduler(),
    async (meeting, scheduler) => {
      expect(await stage.play(meeting, scheduler)).toEqual([])
      const { lifecycle, scene, verbs } = meeting
      const order = scheduler.report().map(({ label }) => label)
      for (const turn of order) turns.add(turn)
      orders.add(JSON.stringify([lifecycle.name, scene, verbs, order]))
    },
  )

describe.each(lifecycles)('in the lifecycle $name', (lifecycle) => {
  it.each(SCENES)(
    'any two verbs keep the promises on jobs that are %s',
    async (scene) => {
      for (const [i, verbs] of pairs.entries()) {
        const property = interleavings(
          fc.constant(lifecycle),
          fc.constant(scene),
          fc.constant(verbs),
        )
        await fc.assert(property, { numRuns: runs, seed: seed * 1000 + i })
      }
    },
    LONG_MS,
  )
})

it(
  'any three verbs keep the promises',
  async () => {
    const three = fc.tuple(verb, verb, verb)
    const property = interleavings(
      fc.constantFrom(...lifecycles),
      fc.constantFrom(...SCENES),
      three,
    )
    await fc.assert(property, { numRuns: threes, seed })
  },
  LONG_MS,
)

it('thousands of interleavings were played, with turns inside of the verbs', () => {
  const played = pairs.length * SCENES.length * lifecycles.length * runs + threes
  expect(stage.played).toBe(played)
  console.info(`${stage.played} interleavings on SQLite, ${orders.size} of them different`)
  expect(orders.size).toBeGreaterThan(8000)
  expect([...turns]).toEqual(
    expect.arrayContaining([
      'the next group',
      'found it locked',
      'caller 1: in the commit',
      'caller 1: at the end of the commit',
      'caller 2: in the archive',
    ]),
  )
})
