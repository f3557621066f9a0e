// What both sides of the PostgreSQL benchmark do: loops that share the work, each on a connection
// of its own by hand, or all on one store with as many connections.
import { type Held, openPostgresStore, type Store } from 'pawl/postgres'
import { timed } from './measure.ts'
import { type HeldLine, PostgresReference } from './postgres-reference.ts'
import { execute } from './postgres-server.ts'
import { RESULT } from './reference.ts'
import {
  batchesOf,
  INPUT,
  idsOf,
  itemOf,
  type Load as Jobs,
  nextId,
  QUEUE,
  requestOf,
  settleAll,
  TYPE,
} from './stores.ts'

/** How many jobs, in batches of which size, done by how many loops at once. */
export interface Load extends Jobs {
  readonly loops: number
}

/** One kind of load, on each side: answers how many milliseconds of it count. */
export interface LoadPair {
  readonly name: string
  /** Whether the jobs are there before the clock starts. */
  readonly filled: boolean
  readonly pawl: (store: Store, load: Load) => Promise<number>
  readonly reference: (loops: readonly PostgresReference[], load: Load) => Promise<number>
}

const enqueue: LoadPair = {
  name: 'enqueue',
  filled: false,
  pawl: (store, load) => {
    const batches = batchesOf(load)
      .map((ids) => ids.map(itemOf))
      .values()
    return together(load.loops, async () => {
      for (const items of batches) await store.enqueue(items)
    })
  },
  reference: (loops, load) => {
    const batches = batchesOf(load).values()
    return together(load.loops, async (i) => {
      for (const ids of batches) await loops[i]?.enqueue(ids, QUEUE, TYPE, INPUT)
    })
  },
}

const drain: LoadPair = {
  name: 'drain',
  filled: true,
  pawl: (store, load) =>
    together(load.loops, async () => {
      let held: readonly Held[] = await store.claim(requestOf(load))
      while (held.length > 0) held = await settleAll(store, held, load)
    }),
  reference: (loops, load) =>
    together(load.loops, async (i) => {
      let held: readonly HeldLine[] = await drainOnce(loops[i], [], load)
      while (held.length > 0) held = await drainOnce(loops[i], held, load)
    }),
}

/** Has everything in it: jobs are accepted, claimed and committed. */
export const mixed: LoadPair = {
  name: 'mixed',
  filled: false,
  pawl: (store, load) => {
    const batches = batchesOf(load)
      .map((ids) => ids.map(itemOf))
      .values()
    return together(load.loops, async () => {
      let held: readonly Held[] = []
      for (const items of batches) {
        await store.enqueue(items)
        held = await settleAll(store, held, load)
      }
    })
  },
  reference: (loops, load) => {
    const batches = batchesOf(load).values()
    return together(load.loops, async (i) => {
      let held: readonly HeldLine[] = []
      for (const ids of batches) {
        await loops[i]?.enqueue(ids, QUEUE, TYPE, INPUT)
        held = await drainOnce(loops[i], held, load)
      }
    })
  },
}

/** All of them. */
export const LOADS: readonly LoadPair[] = [enqueue, drain, mixed]

async function drainOnce(
  loop: PostgresReference | undefined,
  held: readonly HeldLine[],
  { batch }: Load,
): Promise<readonly HeldLine[]> {
  const results = held.map(() => RESULT)
  return (await loop?.drain(held, results, { queue: QUEUE, claim: nextId(), limit: batch })) ?? []
}

/** How long loops take together. */
function together(loops: number, loop: (i: number) => Promise<void>): Promise<number> {
  return timed(async () => {
    await Promise.all(Array.from({ length: loops }, (_, i) => loop(i)))
  })
}

/** A store with so many connections. */
export function openPostgres(url: string, connections: number): Promise<Store> {
  return openPostgresStore({ connectionString: url, connections })
}

/** Jobs per second of the store. */
export async function ratePawl(url: string, load: Load, pair: LoadPair): Promise<number> {
  await using store = await openPostgresStore({ connectionString: url, connections: load.loops })
  if (pair.filled) await fill(url, load.jobs)
  return (load.jobs / (await pair.pawl(store, load))) * 1000
}

/** Jobs per second by hand. */
export async function rateReference(url: string, load: Load, pair: LoadPair): Promise<number> {
  await (await openPostgresStore({ connectionString: url })).close()
  if (pair.filled) await fill(url, load.jobs)
  const opening = Array.from({ length: load.loops }, () => PostgresReference.open(url))
  const loops = await Promise.all(opening)
  try {
    return (load.jobs / (await pair.reference(loops, load))) * 1000
  } finally {
    await Promise.all(loops.map((loop) => loop.close()))
  }
}

const FILL_BATCH = 1000

/**
 * Leaves jobs behind that have ended. A connection plans each statement once, and for tables that
 * are empty at that moment it plans to read all of them.
 */
export async function makeHistory(url: string): Promise<void> {
  const load = { batch: 500, jobs: 20_000, loops: 1 }
  await rateReference(url, load, drain)
  await execute(url, 'VACUUM ANALYZE')
}

/** Ready jobs, the same for both sides, in tables that the planner knows the sizes of. */
export async function fill(url: string, jobs: number): Promise<void> {
  const loop = await PostgresReference.open(url)
  for (let left = jobs; left > 0; left -= FILL_BATCH) {
    await loop.enqueue(idsOf(Math.min(left, FILL_BATCH)), QUEUE, TYPE, INPUT)
  }
  await loop.close()
  await execute(url, 'VACUUM ANALYZE')
}
