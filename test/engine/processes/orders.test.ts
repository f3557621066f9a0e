// Processes that are killed at each point between the first step of a job and the mark of its last
// delivery. Whatever another process finds, it finishes: rows once, effects at least once and under
// one key, finished steps not again.
import { fork } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineJob } from 'pawl'
import { expect, it, onTestFinished } from 'vitest'
import { freshFolder } from '../../processes/folder.ts'
import { brokenPromises } from '../../processes/inspect.ts'
import { half } from '../../support/extent.ts'
import { PLACES, type Place } from './places.ts'
import { until } from './until.ts'

const PROGRAM = fileURLToPath(new URL('orders.mjs', import.meta.url))
const AT_ONCE = 4

const order = defineJob({
  name: 'order',
  crashesMax: 10,
  retry: { delay: '20ms', jitter: 0 },
})

/** What the world outside has seen, in which attempts the steps ran, and how often it was taken. */
interface Expected {
  readonly steps: readonly string[]
  readonly booked: number
  readonly deliveries: number
  readonly tries: number
}

const ONCE = { steps: ['first 1', 'second 1', 'third 1'], booked: 1, deliveries: 1, tries: 1 }
const AGAIN = { ...ONCE, booked: 2 }
const TAKEN_TWICE = { ...ONCE, tries: 2 }
const SENT_TWICE = { ...ONCE, tries: 2, deliveries: 2 }

const POINTS: Readonly<Record<string, Expected>> = {
  'before the steps': { ...AGAIN, steps: ['first 2', 'second 2', 'third 2'] },
  'in the second step': { ...AGAIN, steps: ['first 1', 'second 2', 'third 2'] },
  'after the second step': { ...AGAIN, steps: ['first 1', 'second 1', 'third 2'] },
  'after the third step': AGAIN,
  'commit.begun': AGAIN,
  'before the row': AGAIN,
  'after the row': AGAIN,
  'after the effect': AGAIN,
  'commit.written': AGAIN,
  'commit.committed': ONCE,
  'after the commit': ONCE,
  'before the delivery': TAKEN_TWICE,
  'after the delivery': SENT_TWICE,
  'settleEffects.begun': SENT_TWICE,
  'settleEffects.written': SENT_TWICE,
  'settleEffects.committed': ONCE,
}

/** Points that only one of the stores has. */
const SQLITE_ONLY = ['commit.written']

function start(argument: object) {
  const child = fork(PROGRAM, [JSON.stringify(argument)], { execArgv: [] })
  const state = { signal: undefined as NodeJS.Signals | null | undefined }
  child.on('exit', (_, signal) => {
    state.signal = signal
  })
  return { state, kill: () => void child.kill('SIGKILL') }
}

async function play(dieAt: string, { store, pawl, bookings }: Place, ends: (() => void)[]) {
  const world = join(freshFolder(), 'world')
  const handle = await pawl.enqueue(order, null)
  const first = start({ store, world, dieAt })
  ends.push(first.kill)
  await until(`it dies at ${dieAt}`, () => first.state.signal !== undefined, 30_000)
  expect(first.state.signal).toBe('SIGKILL')
  const second = start({ store, world })
  ends.push(second.kill)
  await until('another finishes', async () => (await handle.get()).outcome !== null, 30_000)
  second.kill()
  const lines = existsSync(world) ? readFileSync(world, 'utf8').trim().split('\n') : []
  const mails = lines.filter((line) => line.startsWith('mail '))
  const keys = new Set(mails.map((line) => line.split(' ')[1]))
  expect(keys, dieAt).toEqual(new Set([`${handle.id}/mail/1`]))
  const { items } = await pawl.store.listEffects({ jobId: handle.id })
  const [booking, ...others] = await bookings()
  expect(others, dieAt).toEqual([])
  expect(await brokenPromises(pawl.store), dieAt).toEqual([])
  const tries = items.map((effect) => effect.tries)
  expect(tries, dieAt).toHaveLength(1)
  return {
    steps: lines.filter((line) => !line.startsWith('mail ')),
    booked: booking?.attempt,
    deliveries: mails.length,
    tries: tries[0],
  }
}

it.each(PLACES)(
  'on $name a process killed at any point leaves a job that another finishes',
  { timeout: 240_000 },
  async ({ name, place }) => {
    const ends: (() => void)[] = []
    onTestFinished(() => {
      for (const end of ends) end()
    })
    // `npm test` has each point on one of the databases, `npm run prove` on both.
    const points = half(Object.keys(POINTS), name === 'PostgreSQL' ? 1 : 0).filter(
      (point) => name !== 'PostgreSQL' || !SQLITE_ONLY.includes(point),
    )
    const seen: Record<string, unknown> = {}
    for (let from = 0; from < points.length; from += AT_ONCE) {
      await Promise.all(
        points.slice(from, from + AT_ONCE).map(async (point) => {
          seen[point] = await play(point, await place(), ends)
        }),
      )
    }
    expect(seen).toEqual(Object.fromEntries(points.map((point) => [point, POINTS[point]])))
  },
)
