// Processes that are asked to stop.
import { expect, it } from 'vitest'
import { brokenPromises } from '../../processes/inspect.ts'
import { echo, wait } from './jobs.ts'
import { PLACES, sqlitePlace } from './places.ts'
import { WorkerProcess } from './worker-process.ts'

const CLEAN = { code: 0, signal: null }
const GIVEN_BACK = { state: 'queued', attempt: 1, releases: 1, failures: 0, crashes: 0 }
const DRAINING = { kind: 'state', state: 'Draining' } as const

it.each(PLACES)(
  'on $name a process that is asked to stop finishes what it can, gives back the \
rest at no cost, takes nothing new, and ends by itself',
  async ({ place }) => {
    const { pawl, store } = await place()
    const worker = await WorkerProcess.start(store, { lease: '2s', drain: '1s' })
    const finished = await pawl.enqueue(wait, {})
    const unfinished = await pawl.enqueue(wait, {})
    for (const { id } of [finished, unfinished]) {
      await worker.tells({ kind: 'started', jobId: id, attempt: 1 })
    }
    worker.signal('SIGTERM')
    await worker.tells(DRAINING)
    const late = await pawl.enqueue(echo, null)
    worker.order(finished.id)
    expect(await worker.ends()).toEqual(CLEAN)

    expect(worker.said).toContainEqual({
      ...{ kind: 'aborted', jobId: unfinished.id, attempt: 1 },
      code: 'E_SHUTTING_DOWN',
    })
    const kept = { state: 'succeeded', attempt: 1, releases: 0, failures: 0, crashes: 0 }
    expect(await finished.get()).toMatchObject(kept)
    expect(await unfinished.get()).toMatchObject(GIVEN_BACK)
    expect(await late.get()).toMatchObject({ state: 'queued', attempt: 0 })
    expect(await pawl.store.listWorkers()).toEqual([])
    expect(await brokenPromises(pawl.store)).toEqual([])
  },
)

it.each(PLACES)(
  'on $name a process that is asked twice to stop waits for no handler',
  async ({ place }) => {
    const { pawl, store } = await place()
    const worker = await WorkerProcess.start(store, { lease: '2s', drain: '1h' })
    const job = await pawl.enqueue(wait, {})
    await worker.tells({ kind: 'started', jobId: job.id, attempt: 1 })
    worker.signal('SIGTERM')
    await worker.tells(DRAINING)
    expect(await job.get()).toMatchObject({ state: 'running' })
    worker.signal('SIGTERM')
    expect(await worker.ends()).toEqual(CLEAN)
    expect(await job.get()).toMatchObject(GIVEN_BACK)
  },
)

it('a handler that ignores its abort keeps its process for some seconds only', async () => {
  const { pawl, store } = await sqlitePlace()
  const worker = await WorkerProcess.start(store, { lease: '2s', drain: 0 })
  const job = await pawl.enqueue(wait, { stubborn: true })
  await worker.tells({ kind: 'started', jobId: job.id, attempt: 1 })
  worker.signal('SIGTERM')
  expect(await worker.ends()).toEqual(CLEAN)
  expect(await job.get()).toMatchObject(GIVEN_BACK)
})
