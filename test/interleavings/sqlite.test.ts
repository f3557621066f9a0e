// Any two verbs, and random threes, on jobs in every place that a job can be in, begun and
// continued in orders that a scheduler chooses: from processes of their own on one file, or from
// one process that writes for several callers. The seed names the orders; a failure shows its own.
//
// Two verbs that each do something there are played in two orders, and in one if only one of them
// does. If neither does anything alone, nothing can change, and they are left out.
//
// PAWL_TEST_INTERLEAVINGS=<n> plays n times as many, in all lifecycles; `npm run prove` plays three
// times as many.
import fc from 'fast-check'
import type { Lifecycle } from 'pawl'
import { LIFECYCLES, leased, standard } from 'pawl/rules'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { thorough } from '../support/extent.ts'
import { testSeed as seed } from '../support/seed.ts'
import { SCENES, type SceneName } from './scenes.ts'
import { type Meeting, SqliteStage } from './sqlite-stage.ts'
import { VERB_NAMES, type VerbName } from './verbs.ts'

const asked = Number(process.env.PAWL_TEST_INTERLEAVINGS ?? thorough(0, 3))
const lifecycles = asked > 0 ? LIFECYCLES : [standard, leased]
const times = Math.max(1, asked)
const ORDERS = 2
const THREES = 600
const LONG_MS = 3_600_000

const pairs = VERB_NAMES.flatMap((one, i): [VerbName, VerbName][] =>
  VERB_NAMES.slice(i).map((other) => [one, other]),
)

let stage: SqliteStage
/** Every order that was played, and every turn that was taken in one. */
const orders = new Set<string>()
const turns = new Set<string>()

beforeAll(async () => {
  stage = await SqliteStage.open(LIFECYCLES)
})
afterAll(() => stage.close())

/** A meeting in an order that a scheduler chooses, by callers in processes that are chosen, too. */
function interleavings(meeting: fc.Arbitrary<Omit<Meeting, 'places'>>) {
  const place = fc.nat({ max: 2 })
  const places = fc.tuple(place, place, place)
  return fc.asyncProperty(meeting, places, fc.scheduler(), async (who, places, scheduler) => {
    expect(await stage.play({ ...who, places }, scheduler)).toEqual([])
    const order = scheduler.report().map(({ label }) => label)
    for (const turn of order) turns.add(turn)
    orders.add(JSON.stringify([who.lifecycle.name, who.scene, who.verbs, order]))
  })
}

/** Those who do something there when they are alone, as the first and as the second caller. */
async function actorsIn(scene: SceneName, lifecycle: Lifecycle): Promise<Set<VerbName>[]> {
  const actors = [new Set<VerbName>(), new Set<VerbName>()]
  for (const [place, found] of actors.entries()) {
    for (const verb of VERB_NAMES) {
      if (await stage.acts(scene, lifecycle, verb, place)) found.add(verb)
    }
  }
  return actors
}

async function playPairs(scene: SceneName, lifecycle: Lifecycle): Promise<void> {
  const actors = await actorsIn(scene, lifecycle)
  for (const [i, verbs] of pairs.entries()) {
    const acting = verbs.filter((verb, place) => actors[place]?.has(verb)).length
    const numRuns = acting === 2 ? times * ORDERS : times * acting
    const property = interleavings(fc.constant({ lifecycle, scene, verbs }))
    await fc.assert(property, { numRuns, seed: seed * 1000 + i })
  }
}

async function playThrees(): Promise<void> {
  const verb = fc.constantFrom(...VERB_NAMES)
  const meeting = fc.record({
    lifecycle: fc.constantFrom(...lifecycles),
    scene: fc.constantFrom(...SCENES),
    verbs: fc.tuple(verb, verb, verb),
  })
  await fc.assert(interleavings(meeting), { numRuns: times * THREES, seed })
}

describe.each(lifecycles)('in the lifecycle $name', (lifecycle) => {
  it.each(SCENES)(
    'any two verbs keep the promises on jobs that are %s',
    { timeout: LONG_MS },
    (at) => playPairs(at, lifecycle),
  )
})

it('any three verbs keep the promises', { timeout: LONG_MS }, playThrees)

it('thousands of interleavings were played, with turns inside of the verbs', () => {
  console.info(`${stage.played} interleavings on SQLite, ${orders.size} of them different`)
  expect(orders.size).toBeGreaterThan(4000)
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
