// On PostgreSQL a verb is several statements, and others come in between. So for every two verbs
// that each do something to jobs in a place, the first is held before each of its statements while
// the second runs until it has ended or waits for a lock; then the first goes on. Verbs that find
// others in their way wait or try again, and no caller hears of it.
//
// PAWL_TEST_INTERLEAVINGS=1 holds every verb against every other, in all lifecycles.
import type { Lifecycle } from 'pawl'
import { LIFECYCLES, standard } from 'pawl/rules'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sharedPostgres } from '../support/postgres/databases.ts'
import { PostgresStage, type Solo } from './postgres-stage.ts'
import { SCENES, type SceneName } from './scenes.ts'
import { isComposed, isHolders, VERB_NAMES, type VerbName } from './verbs.ts'

const isLong = Number(process.env.PAWL_TEST_INTERLEAVINGS ?? 0) > 0
const lifecycles = isLong ? LIFECYCLES : [standard]
const LONG_MS = 3_600_000

/** What late holders do, and those who are in time meanwhile. */
const LATE: readonly VerbName[] = ['heartbeat', 'commit', 'succeed', 'succeed and claim', 'fail']

/** Verbs that are others in every statement, and differ in what is decided alone. */
const ALIKE: readonly VerbName[] = ['fail for good', 'cancel as holder']

/** What the server says to one of those who wait for each other. */
const CIRCLES = ['40P01', '40001']

type Pair = readonly [VerbName, VerbName]

let stage: PostgresStage
beforeAll(async () => {
  stage = await PostgresStage.open(sharedPostgres())
})
afterAll(() => stage.close())

/**
 * Verbs that do nothing there when they are alone cannot be in anybody's way, but for those of a
 * late holder, where only holders are new. And a holder of jobs that nobody holds claims them
 * first, and is then as if they were held.
 */
function isWorthIt(scene: SceneName, verb: VerbName, { acts }: Solo): boolean {
  if (isLong) return true
  if (scene.startsWith('taken over')) return LATE.includes(verb)
  return acts && !ALIKE.includes(verb) && !(scene === 'ready' && isHolders(verb))
}

/** Every two verbs that do something there, and every place to hold the first. */
async function meetingsIn(scene: SceneName, lifecycle: Lifecycle): Promise<[Pair, number][]> {
  const solos = new Map<VerbName, Solo>()
  for (const verb of VERB_NAMES) {
    const solo = await stage.solo(scene, lifecycle, verb)
    if (isWorthIt(scene, verb, solo)) solos.set(verb, solo)
  }
  const single = [...solos].filter(([verb]) => !isComposed(verb))
  return single.flatMap(([first, { statements }]) =>
    [...solos.keys()].flatMap((second) =>
      Array.from({ length: statements }, (_, i): [Pair, number] => [[first, second], i + 1]),
    ),
  )
}

describe.each(lifecycles)('in the lifecycle $name', (lifecycle) => {
  it.each(SCENES)(
    'a verb that is held midway keeps the promises on jobs that are %s',
    async (scene) => {
      for (const [pair, n] of await meetingsIn(scene, lifecycle)) {
        const wrong = await stage.play(scene, lifecycle, pair, n)
        expect(wrong, `${pair[0]}, held before statement ${n}, and ${pair[1]}`).toEqual([])
      }
    },
    LONG_MS,
  )
})

it('hundreds of meetings were played, and nobody waited in a circle', () => {
  const refused = [...new Set(stage.refusals)]
  console.info(`${stage.played} meetings on PostgreSQL; refused inside of verbs: [${refused}]`)
  expect(stage.played).toBeGreaterThan(900)
  expect(refused.filter((code) => CIRCLES.includes(code))).toEqual([])
})
