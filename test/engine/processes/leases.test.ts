// Processes that are stopped for longer than their lease, and handlers that block them for as long.
import type { Pawl } from 'pawl'
import type { Fact } from 'pawl/rules'
import { expect, it, onTestFinished } from 'vitest'
import { brokenPromises, openRaw } from '../../processes/inspect.ts'
import { hog, outlast, wait } from './jobs.ts'
import { PLACES, type Place, sqlitePlace } from './places.ts'
import { until } from './until.ts'
import { WorkerProcess } from './worker-process.ts'

const ENDINGS = [
  { after: 'abort', by: 'commit' },
  { after: 'order', by: 'commit' },
  { after: 'abort', by: 'return' },
  { after: 'order', by: 'return' },
] as const
const WORK = { concurrency: ENDINGS.length, lease: '1s', recover: '100ms' } as const

it.each(PLACES)(
  'on $name a process that was stopped beyond its lease is told so when it wakes up, \
and whatever it then does changes nothing',
  async ({ place }) => {
    const { pawl, store, bookings, isQuiet } = await place()
    const stopped = await WorkerProcess.start(store, WORK)
    const handles = await pawl.enqueueMany(
      outlast,
      ENDINGS.map((input) => ({ input })),
    )
    const ids = handles.map(({ id }) => id)
    for (const jobId of ids) await stopped.tells({ kind: 'started', jobId, attempt: 1 })
    await stopBetweenTransactions(stopped, isQuiet)

    await WorkerProcess.start(store, WORK)
    for (const handle of handles) {
      expect(await handle.result({ timeout: '15s' })).toMatchObject({
        kind: 'succeeded',
        output: { attempt: 2 },
      })
    }
    const before = await ledgersOf(pawl, ids)

    // The orders are there when it wakes up: two handlers go on before anybody can have told them.
    for (const id of ids) stopped.order(id)
    stopped.signal('SIGCONT')
    for (const [i, { after, by }] of ENDINGS.entries()) {
      const told = { jobId: ids[i] as string, attempt: 1 }
      await stopped.tells({ kind: 'lost', jobId: told.jobId })
      if (by === 'commit') await stopped.tells({ kind: 'refused', ...told, code: 'E_STALE_FENCE' })
      if (by === 'commit' || after === 'abort') {
        await stopped.tells({ kind: 'aborted', ...told, code: 'E_LEASE_LOST' })
      }
    }
    stopped.signal('SIGTERM')
    expect(await stopped.ends()).toEqual({ code: 0, signal: null })

    expect(await ledgersOf(pawl, ids)).toEqual(before)
    for (const facts of before) {
      expect(facts.filter(({ trigger }) => trigger === 'commit')).toHaveLength(1)
    }
    const committed = ids.filter((_, i) => ENDINGS[i]?.by === 'commit').sort()
    expect(await bookings()).toEqual(committed.map((job) => ({ job, attempt: 2 })))
    expect(await brokenPromises(pawl.store)).toEqual([])
  },
)

it('a handler that blocks its process for three leases keeps its job and finishes it', async () => {
  const { pawl, store } = await sqlitePlace()
  const leaseMs = 1000
  const options = { concurrency: 1, lease: leaseMs, recover: '50ms' } as const
  await WorkerProcess.start(store, options)
  const job = await pawl.enqueue(hog, { ms: 3 * leaseMs })
  // Somebody who would take the job if its lease ended.
  await WorkerProcess.start(store, options)
  const outcome = await job.result({ timeout: '15s' })
  expect(outcome).toMatchObject({ kind: 'succeeded', output: { attempt: 1 }, job: { crashes: 0 } })
  const facts = await pawl.store.facts(job.id)
  expect(facts.map(({ trigger }) => trigger)).toEqual(['create', 'claim', 'commit'])
  expect((facts[2] as Fact).at - (facts[1] as Fact).at).toBeGreaterThanOrEqual(3 * leaseMs)
})

it('a handler whose lease no thread could renew is told so while the file is locked', async () => {
  const { pawl, path, store } = await sqlitePlace()
  const leaseMs = 1000
  const worker = await WorkerProcess.start(store, { lease: leaseMs, recover: '100ms' })
  const job = await pawl.enqueue(wait, {})
  const told = { jobId: job.id, attempt: 1 }
  await worker.tells({ kind: 'started', ...told })
  const locked = openRaw(path)
  onTestFinished(() => locked.close())
  locked.exec('BEGIN IMMEDIATE')
  const from = performance.now()
  await worker.tells({ kind: 'aborted', ...told, code: 'E_LEASE_LOST' })
  expect(performance.now() - from).toBeLessThan(3 * leaseMs)
  locked.exec('ROLLBACK')

  await worker.tells({ kind: 'started', jobId: job.id, attempt: 2 })
  worker.order(job.id)
  expect(await job.result({ timeout: '15s' })).toMatchObject({ output: { attempt: 2 } })
  expect(await brokenPromises(pawl.store)).toEqual([])
})

function ledgersOf(pawl: Pawl, ids: readonly string[]): Promise<Fact[][]> {
  return Promise.all(ids.map((id) => pawl.store.facts(id)))
}

/** Stops a process. A transaction that it has open would keep its locks for as long. */
async function stopBetweenTransactions(
  process: WorkerProcess,
  isQuiet: Place['isQuiet'],
): Promise<void> {
  await until('the process is stopped between two transactions', async () => {
    process.signal('SIGSTOP')
    if (await isQuiet()) return true
    process.signal('SIGCONT')
    return false
  })
}
