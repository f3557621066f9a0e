// The SQLite store against a hand-written loop on the same driver and the same tables, with
// synchronous FULL and a fresh file for each turn. Rates are jobs per second, so a ratio of 1 is
// the speed of the loop. See docs/internals/performance.md for what the ratios should be.
import { join } from 'node:path'
import { standard } from 'pawl/rules'
import { type EnqueueItem, type Held, openSqliteStore, type Store } from 'pawl/sqlite'
import { benchClaimTime } from './claim-time.ts'
import { compare, inFolder, type Result, timed } from './measure.ts'
import { benchMemory } from './memory.ts'
import { type HeldRow, LEASE_MS, openDatabase, RESULT, Reference, WORKER } from './reference.ts'

export const QUEUE = 'mail'
export const TYPE = 'send-mail'
export const INPUT = '{"to":"ann@example.org","subject":"Hello","lines":["One","Two","Three"]}'
export const ROUNDS = 7

/** How many jobs a turn has, by the size of its batches; small batches wait for the disk more. */
const JOBS: readonly (readonly [batch: number, jobs: number])[] = [
  [1, 1000],
  [10, 5000],
  [100, 20_000],
  [500, 20_000],
]

/** Measures everything, or what has `only` in its name. */
export async function benchStores(options: { quick: boolean; only?: string }): Promise<Result[]> {
  const { quick, only = '' } = options
  await assertSameRows()
  const results: Result[] = []
  for (const [batch, jobs] of JOBS) {
    const load = { batch, jobs: quick ? jobs / 10 : jobs }
    for (const { name, pawl, reference } of LOADS) {
      const title = `${name}, batches of ${batch}`
      if (!title.includes(only)) continue
      const own = () => inFolder((folder) => runPawl(folder, load, pawl))
      const other = () => inFolder((folder) => runReference(folder, load, reference))
      results.push(await compare(title, ROUNDS, own, other))
    }
  }
  if (CALLERS_NAME.includes(only)) results.push(await benchCallers(quick ? 500 : 2000))
  results.push(...(await benchClaimTime(quick, only)))
  results.push(...(await benchMemory(quick, only)))
  return results
}

export interface Load {
  readonly batch: number
  readonly jobs: number
}

/** One kind of load, on each side: answers how many milliseconds of it count. */
interface LoadPair {
  readonly name: string
  readonly pawl: (store: Store, load: Load) => Promise<number>
  readonly reference: (loop: Reference, load: Load) => Promise<number>
}

const LOADS: readonly LoadPair[] = [
  {
    name: 'enqueue',
    pawl: (store, load) => {
      const batches = batchesOf(load).map((ids) => ids.map(itemOf))
      return timed(async () => {
        for (const items of batches) await store.enqueue(items)
      })
    },
    reference: async (loop, load) => {
      const batches = batchesOf(load)
      return timed(() => {
        for (const ids of batches) loop.enqueue(ids, QUEUE, TYPE, INPUT)
      })
    },
  },
  {
    name: 'drain',
    pawl: async (store, load) => {
      await store.enqueue(idsOf(load.jobs).map(itemOf))
      return timed(async () => {
        let held: readonly Held[] = await store.claim(requestOf(load))
        while (held.length > 0) held = await settleAll(store, held, load)
      })
    },
    reference: async (loop, load) => {
      loop.enqueue(idsOf(load.jobs), QUEUE, TYPE, INPUT)
      return timed(() => {
        let held: HeldRow[] = []
        do held = loop.drain(held, QUEUE, nextId(), load.batch)
        while (held.length > 0)
      })
    },
  },
  {
    name: 'mixed',
    pawl: (store, load) => {
      const batches = batchesOf(load).map((ids) => ids.map(itemOf))
      return timed(async () => {
        let held: readonly Held[] = []
        for (const items of batches) {
          await store.enqueue(items)
          held = await settleAll(store, held, load)
        }
      })
    },
    reference: async (loop, load) => {
      const batches = batchesOf(load)
      return timed(() => {
        let held: HeldRow[] = []
        for (const ids of batches) {
          loop.enqueue(ids, QUEUE, TYPE, INPUT)
          held = loop.drain(held, QUEUE, nextId(), load.batch)
        }
      })
    },
  },
]

const CALLERS_NAME = 'enqueue one by one, 50 callers against 1'

/** Group commit: callers of the same moment share a transaction. One caller is the reference. */
function benchCallers(jobs: number): Promise<Result> {
  const rate = (callers: number, count: number) =>
    inFolder((folder) =>
      runPawl(folder, { batch: 1, jobs: count }, (store) => {
        const items = idsOf(count).map(itemOf)
        const call = async () => {
          for (let item = items.pop(); item !== undefined; item = items.pop()) {
            await store.enqueue([item])
          }
        }
        return timed(async () => {
          await Promise.all(Array.from({ length: callers }, call))
        })
      }),
    )
  return compare(
    CALLERS_NAME,
    ROUNDS,
    () => rate(50, jobs * 10),
    () => rate(1, jobs),
  )
}

async function runPawl(folder: string, load: Load, run: LoadPair['pawl']): Promise<number> {
  await using store = await openSqliteStore({ path: join(folder, 'jobs.db') })
  return (load.jobs / (await run(store, load))) * 1000
}

async function runReference(
  folder: string,
  load: Load,
  run: LoadPair['reference'],
): Promise<number> {
  const path = join(folder, 'jobs.db')
  await (await openSqliteStore({ path })).close()
  const loop = new Reference(path)
  try {
    return (load.jobs / (await run(loop, load))) * 1000
  } finally {
    loop.close()
  }
}

export async function settleAll(store: Store, held: readonly Held[], load: Load) {
  const settlements = held.map((one) => {
    const fence = { attempt: one.job.attempt, claim: one.job.execution?.claim ?? '' }
    return { held: one, command: { kind: 'commit', fence } as const, payload: RESULT }
  })
  const { claimed } = await store.settle(settlements, requestOf(load))
  return claimed
}

export const requestOf = ({ batch }: Load) => ({
  worker: WORKER,
  queues: [QUEUE],
  limit: batch,
  leaseMs: LEASE_MS,
  start: true,
})

let ids = 0

/** Ids rise as those of a real process do, because their order decides how fast an index grows. */
export function nextId(): string {
  return `0190a000-0000-7000-8000-${(++ids).toString(16).padStart(12, '0')}`
}

export const idsOf = (count: number) => Array.from({ length: count }, nextId)

export const batchesOf = ({ batch, jobs }: Load) =>
  Array.from({ length: jobs / batch }, () => idsOf(batch))

export const itemOf = (jobId: string): EnqueueItem => ({
  lifecycle: standard,
  command: { jobId, type: TYPE, queue: QUEUE },
  input: INPUT,
})

/** Plays a few jobs on both sides and compares the files: the same work must have been done. */
export async function assertSameRows(): Promise<void> {
  const load = { batch: 3, jobs: 9 }
  const drain = LOADS[1] as LoadPair
  const dumps: string[][] = []
  for (const run of [
    (folder: string) => runPawl(folder, load, drain.pawl),
    (folder: string) => runReference(folder, load, drain.reference),
  ]) {
    await inFolder(async (folder) => {
      await run(folder)
      dumps.push(dump(join(folder, 'jobs.db')))
    })
  }
  const [own = [], other = []] = dumps
  const place = own.findIndex((row, i) => row !== other[i])
  if (place < 0 && own.length === other.length) return
  throw new Error(`The two sides write different rows:\n${own[place]}\n${other[place]}`)
}

/** All rows as text, but for ids with their checksums, and times. */
function dump(path: string): string[] {
  const database = openDatabase(path)
  const rows = ['jobs', 'ledger', 'ended_counts'].flatMap((table) =>
    database.prepare(`SELECT * FROM pawl_${table}`).all(),
  )
  database.close()
  return rows.map((row) =>
    JSON.stringify(row)
      .replace(/\b\d{13}\b/g, '(time)')
      .replace(/Ms\\":\d+/g, 'Ms: (length)')
      .replace(/[0-9a-f]{8}(-[0-9a-f]+){4}(-[0-9a-f]{8})?/g, '(id)'),
  )
}
