// Edges of the worker machine that depend on the store: found and claimed, found and lost, skipped
// recovery. The store is a SQLite file, where looking and claiming are two steps.
import { join } from 'node:path'
import { createPawl, defineJob, type PawlEvent } from 'pawl'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Recovery } from '../../src/engine/worker/recovery.ts'
import type { JobWorker } from '../../src/engine/worker/worker.ts'
import { systemEnvironment } from '../../src/environment/system.ts'
import type { ClaimRequest, Store } from '../../src/stores/contract/store.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { wrapStore } from '../../src/stores/wrap-store.ts'
import { freshFolder } from '../processes/folder.ts'

const job = defineJob({ name: 'plain', queue: 'mine', run: () => 'done' })
const foreign = defineJob({ name: 'foreign', queue: 'other', run: () => 'done' })

/** A worker on a file, the moves of it, and what its claims go through. */
async function workOn(
  claim: (store: Store, request: ClaimRequest) => ReturnType<Store['claim']> = (store, request) =>
    store.claim(request),
) {
  const store = await openSqliteStore({ path: join(freshFolder(), 'jobs.db') })
  const watched = wrapStore(store, { claim: (request) => claim(store, request) })
  const moves: string[] = []
  const waiting: (() => void)[] = []
  const onEvent = (event: PawlEvent) => {
    if (event.type === 'state') moves.push(`${event.from} ${event.on} ${event.to}`)
    for (const look of waiting) look()
  }
  const pawl = await createPawl({ store: watched, jobs: [job, foreign], onEvent })
  onTestFinished(async () => {
    await pawl.close()
    await store.close()
  })
  const start = (): Promise<JobWorker> =>
    pawl.work({ jobs: [job], queues: ['mine'], concurrency: 1, poll: '20ms', checkup: false })
  const seen = (move: string) =>
    new Promise<void>((resolve) => {
      const look = () => {
        if (moves.includes(move)) resolve()
      }
      waiting.push(look)
      look()
    })
  return { pawl, moves, start, seen }
}

describe('a worker', () => {
  it('is in Claiming from the moment at which it found a job until it has the lease', async () => {
    let worker: JobWorker | undefined
    const during: (readonly string[])[] = []
    const { pawl, moves, start } = await workOn(async (store, request) => {
      const held = await store.claim(request)
      if (held.length > 0) during.push([...(worker as JobWorker).states])
      return held
    })
    worker = await start()
    await (await pawl.enqueue(job, {})).result({ timeout: '20s' })
    expect(during).toEqual([['Claiming']])
    const from = moves.indexOf('Polling task-found Claiming')
    expect(moves.slice(from, from + 3)).toEqual([
      'Polling task-found Claiming',
      'Claiming lease-acquired Processing',
      'Processing execution-ok ReportingSuccess',
    ])
  })

  it('goes back to Polling if what is ready is not for it, and takes what comes then', async () => {
    const { pawl, start, seen } = await workOn()
    await pawl.enqueue(foreign, {})
    await start()
    await seen('Claiming claim-lost Polling')
    await seen('Polling no-task-found Backoff')
    const own = await pawl.enqueue(job, {})
    expect(await own.result({ timeout: '20s' })).toMatchObject({ output: 'done' })
  })

  it('goes to ErrorWait if the store fails while it claims', async () => {
    let isBroken = true
    const { pawl, start, seen } = await workOn(async (store, request) => {
      const held = await store.claim(request)
      if (held.length > 0 || !isBroken) return held
      isBroken = false
      request.onFound?.()
      throw new Error('the store failed')
    })
    const worker = await start()
    await seen('Claiming exception ErrorWait')
    await seen('Polling exception ErrorWait')
    expect(worker.states).toEqual(['ErrorWait'])
    await pawl.close()
  })

  it('does not look without a pause at a due job that it cannot make ready', async () => {
    const store = await openSqliteStore({ path: ':memory:' })
    onTestFinished(() => store.close())
    let due = store.now() - 1000
    const promoted: number[] = []
    const promote = async () => promoted.push(due) * 0
    const watched = wrapStore(store, { promote, nextDue: async () => due })
    const recovery = new Recovery(watched, systemEnvironment(), 60_000)
    await recovery.run()
    expect(await recovery.untilNext()).toBeGreaterThan(30_000)
    // It is promoted again when the worker wakes up, and does not hold up what is due later.
    await recovery.run()
    expect(promoted).toHaveLength(2)
    due = store.now() + 500
    expect(await recovery.untilNext()).toBeLessThanOrEqual(500)
  })

  it('skips recovery while its interval has not passed', async () => {
    const { start, seen, moves } = await workOn()
    await start()
    await seen('Recovery recovery-skipped Polling')
    expect(moves.filter((move) => move.startsWith('Recovery'))[0]).toBe(
      'Recovery recovered Polling',
    )
  })
})
