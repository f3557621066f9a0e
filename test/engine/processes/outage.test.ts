// The database server dies under working processes and comes back. PAWL_TEST_SECONDS says after how
// long; from a dozen on it is longer than a store is ready to wait for it.
import { expect, it, onTestFinished } from 'vitest'
import { brokenPromises } from '../../processes/inspect.ts'
import { startPostgres } from '../../support/postgres/server.ts'
import { book, wait } from './jobs.ts'
import { postgresPlaceAt } from './places.ts'
import { until } from './until.ts'
import { WorkerProcess } from './worker-process.ts'

const JOBS = 100
/** Past this every call of a store that began with the outage has been given up. */
const GIVEN_UP_SECONDS = 12
const seconds = Number(process.env.PAWL_TEST_SECONDS ?? 10)
const timeout = (seconds + 90) * 1000

it('workers survive a server that is away for a while, and every job is committed once', {
  timeout,
}, async () => {
  const server = await startPostgres()
  onTestFinished(() => server.stop())
  const { pawl, store, bookings } = await postgresPlaceAt(server.url)
  const inputs = Array.from({ length: JOBS }, (_, i) => ({ input: { ms: 50 + (i % 5) * 25 } }))
  const handles = await pawl.enqueueMany(book, inputs)
  const options = { concurrency: 3, lease: '2s', recover: '200ms' } as const
  const workers = await Promise.all([1, 2].map(() => WorkerProcess.start(store, options)))
  const endedCount = async () => (await pawl.store.counts()).lanes.ended
  await until('they are in the middle of it', async () => (await endedCount()) >= JOBS / 4)

  await server.kill9()
  const downUntil = performance.now() + seconds * 1000
  await until('it was away long enough', () => performance.now() >= downUntil, timeout)
  await server.restart()
  expect((await bookings()).length).toBeLessThan(JOBS)

  await until('all jobs have ended', async () => (await endedCount()) === JOBS, timeout)
  expect(workers.map(({ end }) => end)).toEqual([undefined, undefined])
  const rows = await bookings()
  expect(rows.map(({ job }) => job)).toEqual(handles.map(({ id }) => id).sort())
  const { ended } = await pawl.store.counts()
  expect(ended).toEqual({ succeeded: JOBS })
  expect(await brokenPromises(pawl.store)).toEqual([])
})

it('a handler whose lease no thread could renew is told so while the server is away', async () => {
  const server = await startPostgres()
  onTestFinished(() => server.stop())
  const { pawl, store } = await postgresPlaceAt(server.url)
  const leaseMs = 2000
  const worker = await WorkerProcess.start(store, { lease: leaseMs, recover: '100ms' })
  const job = await pawl.enqueue(wait, {})
  const told = { jobId: job.id, attempt: 1 }
  await worker.tells({ kind: 'started', ...told })
  await server.kill9()
  const from = performance.now()
  await worker.tells({ kind: 'aborted', ...told, code: 'E_LEASE_LOST' })
  expect(performance.now() - from).toBeLessThan(2 * leaseMs)
  await worker.tells({ kind: 'lost', jobId: job.id })

  await server.restart()
  await worker.tells({ kind: 'started', jobId: job.id, attempt: 2 })
  worker.order(job.id)
  expect(await job.result({ timeout: '15s' })).toMatchObject({ output: { attempt: 2 } })
  expect(await brokenPromises(pawl.store)).toEqual([])
})

it.runIf(seconds >= GIVEN_UP_SECONDS)(
  'a worker that began while the server was away keeps its \
leases once it is back',
  { timeout },
  async () => {
    const server = await startPostgres()
    onTestFinished(() => server.stop())
    const { pawl, store } = await postgresPlaceAt(server.url)
    const leaseMs = 1000
    const worker = await WorkerProcess.open(store, { lease: leaseMs, recover: '100ms' })
    await server.kill9()
    const downUntil = performance.now() + seconds * 1000
    worker.order('work')
    await worker.tells({ kind: 'state', state: 'ErrorWait' })
    await until('it was away long enough', () => performance.now() >= downUntil, timeout)
    await server.restart()

    const job = await pawl.enqueue(wait, {})
    await worker.tells({ kind: 'started', jobId: job.id, attempt: 1 })
    const heldUntil = performance.now() + 4 * leaseMs
    await until('some leases have passed', () => performance.now() >= heldUntil)
    worker.order(job.id)
    const outcome = await job.result({ timeout: '15s' })
    expect(outcome).toMatchObject({
      kind: 'succeeded',
      output: { attempt: 1 },
      job: { crashes: 0 },
    })
  },
)
