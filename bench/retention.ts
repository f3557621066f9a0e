// Retention: how many ended jobs a second it removes alone, and what a drain of ready jobs loses
// while it runs in the same process, with rests as in a worker. The ratio of a rate alone is to
// 10,000 jobs a second, that of a drain to the same drain without retention.
import { join } from 'node:path'
import { openPostgresStore } from 'pawl/postgres'
import { type Held, openSqliteStore, type Store } from 'pawl/sqlite'
import { inFolder, type Result, resultOf } from './measure.ts'
import { inDatabase, withServer } from './postgres-server.ts'
import { idsOf, itemOf, requestOf, settleAll } from './stores.ts'

const GOAL = 10_000
const ROUNDS = 5
const BATCH = 100
const STEP = 500
/** As in a worker that runs jobs. */
const REST_BUSY = 6

/** Opens a fresh store, and removes it afterwards. */
type WithStore = <T>(work: (store: Store) => Promise<T>) => Promise<T>

/** Measures both databases. */
export async function benchRetention({ quick }: { quick: boolean }): Promise<Result[]> {
  const jobs = quick ? 3000 : 20_000
  const onSqlite: WithStore = (work) =>
    inFolder(async (folder) => {
      await using store = await openSqliteStore({ path: join(folder, 'jobs.db') })
      return await work(store)
    })
  const results = await measure('SQLite', onSqlite, jobs)
  const others = await withServer((server) => {
    const onPostgres: WithStore = (work) =>
      inDatabase(server, async (connectionString) => {
        await using store = await openPostgresStore({ connectionString })
        return await work(store)
      })
    return measure('PostgreSQL', onPostgres, jobs)
  })
  return [...results, ...others]
}

async function measure(name: string, withStore: WithStore, jobs: number): Promise<Result[]> {
  const alone: { pawl: number; reference: number }[] = []
  const drains: { pawl: number; reference: number }[] = []
  const meanwhile: { pawl: number; reference: number }[] = []
  for (let round = 0; round <= ROUNDS; round++) {
    const rate = await withStore(async (store) => {
      await fill(store, jobs)
      await drain(store)
      const start = performance.now()
      return (await sweep(store, () => true, 0)) / seconds(start)
    })
    const plain = await withStore((store) => drainBeside(store, jobs, false))
    const beside = await withStore((store) => drainBeside(store, jobs, true))
    if (round === 0) continue
    alone.push({ pawl: rate, reference: GOAL })
    drains.push({ pawl: beside.drained, reference: plain.drained })
    meanwhile.push({ pawl: beside.removed, reference: GOAL })
  }
  return [
    resultOf(`${name}: retention alone`, alone),
    resultOf(`${name}: a drain while retention runs`, drains),
    resultOf(`${name}: retention while jobs are drained`, meanwhile),
  ]
}

const seconds = (start: number) => (performance.now() - start) / 1000

async function fill(store: Store, jobs: number): Promise<void> {
  for (let left = jobs; left > 0; left -= 1000) await store.enqueue(idsOf(1000).map(itemOf))
}

async function drain(store: Store): Promise<number> {
  const load = { batch: BATCH, jobs: 0 }
  let done = 0
  let held: readonly Held[] = await store.claim(requestOf(load))
  while (held.length > 0) {
    done += held.length
    held = await settleAll(store, held, load)
  }
  return done
}

/** Drains jobs, beside retention of as many that had ended before. Jobs a second of both. */
async function drainBeside(store: Store, jobs: number, isBeside: boolean) {
  await fill(store, 2 * jobs)
  await drain(store)
  await fill(store, jobs)
  let isOver = false
  const start = performance.now()
  const removing = isBeside ? sweep(store, () => !isOver, REST_BUSY) : Promise.resolve(0)
  const drained = (await drain(store)) / seconds(start)
  isOver = true
  return { drained, removed: (await removing) / seconds(start) }
}

/** Removes jobs in steps while it may, with rests of so many times a step. */
async function sweep(store: Store, may: () => boolean, rest: number): Promise<number> {
  const endedBefore = store.now() + 60_000
  let removed = 0
  let after: string | undefined
  while (may()) {
    const start = performance.now()
    const request = { outcome: 'succeeded', endedBefore, limit: STEP } as const
    const step = await store.retention.sweep({ ...request, ...(after !== undefined && { after }) })
    removed += step.removed
    after = step.next ?? after
    if (!step.hasMore) break
    const ms = rest * (performance.now() - start)
    if (ms > 0) await new Promise<void>((resolve) => setTimeout(resolve, ms))
  }
  return removed
}
