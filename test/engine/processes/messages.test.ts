// What one process has to tell another: that there is work, how far it is, that it is not wanted.
import { expect, it } from 'vitest'
import { echo, wait } from './jobs.ts'
import { PLACES } from './places.ts'
import { until } from './until.ts'
import { WorkerProcess } from './worker-process.ts'

/** After so many sleeps in a row the next one is longer than a second, unless it is disturbed. */
const SLEEPS = 7
const WAKE_MS = 500

it.each(PLACES)(
  'on $name a job that one process enqueues wakes up an idle worker of another',
  async ({ place }) => {
    const { pawl, store } = await place()
    const options = { concurrency: 1, poll: '1m', recover: '1m' } as const
    const worker = await WorkerProcess.start(store, options)
    await worker.tells({ kind: 'state', state: 'Idle' }, SLEEPS)
    const from = performance.now()
    const { id } = await pawl.enqueue(echo, 'hello')
    await worker.tells({ kind: 'started', jobId: id, attempt: 1 })
    expect(performance.now() - from).toBeLessThan(WAKE_MS)
  },
)

it.each(PLACES)(
  'on $name what a handler tells of its progress is seen by other processes',
  async ({ place }) => {
    const { pawl, store } = await place()
    await WorkerProcess.start(store)
    const progress = { done: 3, of: 10, note: 'the fourth is large' }
    const job = await pawl.enqueue(wait, { progress })
    await until('its progress is seen', async () => (await job.progress()) !== undefined)
    expect(await job.progress()).toEqual(progress)
  },
)

it.each(PLACES)(
  'on $name a cancellation from one process stops the handler in another',
  async ({ place }) => {
    const { pawl, store } = await place()
    const worker = await WorkerProcess.start(store, { lease: '1500ms' })
    const job = await pawl.enqueue(wait, {})
    const told = { jobId: job.id, attempt: 1 }
    await worker.tells({ kind: 'started', ...told })
    expect(await job.cancel()).toMatchObject({ state: 'running' })
    await worker.tells({ kind: 'aborted', ...told, code: 'E_CANCELLED' })
    expect(await job.result({ timeout: '10s' })).toMatchObject({ kind: 'cancelled' })
    expect(worker.end).toBeUndefined()
  },
)
