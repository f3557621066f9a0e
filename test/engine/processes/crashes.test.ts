// Worker processes that are killed from outside, and one that is killed by its own job.
// PAWL_TEST_JOBS makes the run longer.
import { expect, it } from 'vitest'
import { allJobs, brokenPromises } from '../../processes/inspect.ts'
import { book, echo, poison } from './jobs.ts'
import { PLACES, sqlitePlace } from './places.ts'
import { until } from './until.ts'
import { WorkerProcess } from './worker-process.ts'

const JOBS = Number(process.env.PAWL_TEST_JOBS ?? 120)
const PROCESSES = 3
const KILLS = 8
const EACH = Math.ceil(JOBS / KILLS)
const timeout = 60_000 + JOBS * 100

it.each(PLACES)(
  'on $name every job is committed once while its workers are killed again and \
again',
  { timeout },
  async ({ place }) => {
    const { pawl, store, bookings } = await place()
    const hire = () => WorkerProcess.start(store, { concurrency: 3, lease: '1s', recover: '100ms' })
    const crew = await Promise.all(Array.from({ length: PROCESSES }, hire))
    const ids: string[] = []
    const countOpen = async () => ids.length - (await pawl.store.counts()).lanes.ended

    for (let kill = 1; kill <= KILLS; kill++) {
      const inputs = Array.from({ length: EACH }, (_, i) => ({ input: { ms: 50 + (i % 5) * 25 } }))
      const handles = await pawl.enqueueMany(book, inputs)
      ids.push(...handles.map(({ id }) => id))
      await until('they are in the middle of it', async () => (await countOpen()) <= EACH / 2)
      await crew.shift()?.kill9()
      crew.push(await hire())
    }
    await until('all jobs have ended', async () => (await countOpen()) === 0, timeout)

    const jobs = await allJobs(pawl.store)
    expect(jobs.filter(({ state }) => state !== 'succeeded')).toEqual([])
    const rows = await bookings()
    expect(rows.map(({ job }) => job)).toEqual(ids.sort())
    expect(await brokenPromises(pawl.store)).toEqual([])
    // The killed had work in hand; nothing else went wrong.
    expect(jobs.some(({ crashes }) => crashes > 0)).toBe(true)
    expect(jobs.filter(({ failures, releases }) => failures + releases > 0)).toEqual([])
  },
)

it('a job that kills its process is parked after four starts, and harms no other', {
  timeout: 40_000,
}, async () => {
  const { pawl, store } = await sqlitePlace()
  const bad = await pawl.enqueue(poison, null)
  const inputs = Array.from({ length: 50 }, (_, input) => ({ input }))
  const good = await pawl.enqueueMany(echo, inputs)
  const isOver = async () => {
    const { lanes } = await pawl.store.counts()
    return lanes.ended === good.length && lanes.parked === 1
  }

  const killed: unknown[] = []
  for (;;) {
    const options = { concurrency: 1, lease: '500ms', recover: '50ms' } as const
    const worker = await WorkerProcess.start(store, options)
    await until('it dies or all is done', async () => worker.end !== undefined || isOver())
    if (worker.end === undefined) break
    killed.push(worker.end.signal)
  }
  // Three crashes are granted; the fourth finds nothing left.
  expect(killed).toEqual(['SIGKILL', 'SIGKILL', 'SIGKILL', 'SIGKILL'])
  expect(await bad.get()).toMatchObject({ state: 'quarantined', attempt: 4, crashes: 3 })
  for (const { id } of good) {
    expect(await pawl.store.get(id)).toMatchObject({ state: 'succeeded', attempt: 1, crashes: 0 })
  }
  expect(await brokenPromises(pawl.store)).toEqual([])
})
