/** An operator process: cancels, redrives, moves, pauses and resumes, and is never quite idle. */
import type { Pawl } from 'pawl'
import { SeededRandom } from 'pawl/testing'
import { assertOutage, openPatiently, say, settings } from './child.ts'
import { sleep } from './settings.ts'

const PAUSE_MAX_MS = 400
const LOOK = 30

const random = new SeededRandom(settings.seed)
const below = (n: number) => Math.floor(random.next() * n)
const pawl: Pawl = await openPatiently({})
const operator = pawl.operator({ name: settings.name, reason: 'chaos' })

const deeds: readonly (() => Promise<unknown>)[] = [
  async () => operator.cancel({ ids: await some('ready') }),
  async () => operator.cancel({ ids: await some('held') }),
  async () => operator.cancel({ ids: await some('delivering') }),
  async () => operator.retry({ ids: await some('waiting') }),
  async () => operator.redrive({ ids: await some('parked') }),
  async () => operator.discard({ ids: await some('parked') }),
  async () => operator.quarantine({ ids: await some('ready') }),
  async () => operator.prioritise({ ids: await some('ready') }, below(5)),
  () => operator.retry({ filter: { state: 'failed', type: 'hopeless' }, limit: 2 }),
  () => operator.retryEffects({ filter: { state: 'pending' }, limit: 5 }),
  async () => {
    await operator.pauseQueue('default')
    await sleep(below(PAUSE_MAX_MS))
    await operator.resumeQueue('default')
  },
]

say({ kind: 'ready' })
for (;;) {
  const deed = deeds[below(deeds.length)] as (typeof deeds)[number]
  try {
    await deed()
  } catch (error) {
    assertOutage('operate', error)
  }
  await sleep(below(PAUSE_MAX_MS))
}

/** One or two jobs of a lane; they may have left it when the operator comes to them. */
async function some(lane: 'ready' | 'held' | 'delivering' | 'waiting' | 'parked') {
  const { items } = await pawl.store.list({ lane }, { limit: LOOK })
  const start = below(Math.max(1, items.length))
  return items.slice(start, start + 1 + below(2)).map(({ id }) => id)
}
