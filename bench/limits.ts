// What limits cost: a drain of jobs with limits against a drain of the same jobs without, in turns,
// on a fresh file or database each. Rates are jobs per second, so a ratio of 1 costs nothing.
import { join } from 'node:path'
import { standard } from 'pawl/rules'
import { type EnqueueItem, type Held, openSqliteStore, type Store } from 'pawl/sqlite'
import { compare, inFolder, type Result, timed } from './measure.ts'
import { openPostgres } from './postgres-loads.ts'
import { execute, inDatabase, withServer } from './postgres-server.ts'
import { INPUT, nextId, QUEUE, requestOf, settleAll, TYPE } from './stores.ts'

const ROUNDS = 5
const BATCH = 100

type Keys = NonNullable<EnqueueItem['command']['limitKeys']>

/** One way of limiting jobs. */
interface Variant {
  readonly name: string
  readonly declare: (store: Store) => Promise<unknown>
  readonly keysOf: (n: number) => Keys | undefined
  readonly batch?: number
}

const NONE: Variant = {
  name: 'none',
  declare: async () => {},
  keysOf: () => undefined,
}

const ONE_KEY: Keys = [{ gate: 'shared/one' }]

const VARIANTS: readonly Variant[] = [
  {
    name: 'a limit declared and not used',
    declare: (store) => store.limits.declare([{ name: 'shared/other', max: 1 }]),
    keysOf: () => undefined,
  },
  {
    name: 'a queue limit above the slots',
    declare: (store) => store.limits.declare([{ name: `queue/${QUEUE}`, max: 1000 }]),
    keysOf: () => undefined,
  },
  {
    name: 'a key for each job, limit 1',
    declare: (store) => store.limits.declare([{ name: 'shared/key', max: 1 }]),
    keysOf: (n) => [{ gate: `shared/key/${n}` }],
  },
  {
    name: 'one key, limit 10',
    declare: (store) => store.limits.declare([{ name: 'shared/one', max: 10 }]),
    keysOf: () => ONE_KEY,
  },
]

/** Measures everything, or what has `only` in its name. */
export async function benchLimits(options: { quick: boolean; only?: string }): Promise<Result[]> {
  const { quick, only = '' } = options
  const jobs = quick ? 4000 : 20_000
  const results: Result[] = []
  const wanted = (title: string) => title.includes(only)
  for (const variant of VARIANTS) {
    const title = `SQLite drain, ${variant.name}`
    if (!wanted(title)) continue
    const rate = (one: Variant) => inFolder((folder) => rateSqlite(folder, one, jobs))
    results.push(
      await compare(
        title,
        ROUNDS,
        () => rate(variant),
        () => rate(NONE),
      ),
    )
  }
  if (wanted('SQLite claim behind blocked')) results.push(await benchBlocked(quick, sqliteAt))
  const ofPostgres = VARIANTS.filter(({ name }) => wanted(`PostgreSQL drain, ${name}`))
  const behind = wanted('PostgreSQL claim behind blocked')
  if (ofPostgres.length === 0 && !behind) return results
  return withServer(async (server) => {
    for (const variant of ofPostgres) {
      const rate = (one: Variant) => inDatabase(server, (url) => ratePostgres(url, one, jobs))
      const title = `PostgreSQL drain, ${variant.name}`
      results.push(
        await compare(
          title,
          ROUNDS,
          () => rate(variant),
          () => rate(NONE),
        ),
      )
    }
    if (behind) {
      results.push(
        await inDatabase(server, (url) => benchBlocked(quick, () => openPostgres(url, 2), url)),
      )
    }
    return results
  })
}

const sqliteAt = (folder: string) => openSqliteStore({ path: join(folder, 'jobs.db') })

async function rateSqlite(folder: string, variant: Variant, jobs: number): Promise<number> {
  await using store = await sqliteAt(folder)
  await fill(store, variant, jobs)
  return (jobs / (await drain(store, 1))) * 1000
}

async function ratePostgres(url: string, variant: Variant, jobs: number): Promise<number> {
  await using store = await openPostgres(url, 2)
  await fill(store, variant, jobs)
  await execute(url, 'VACUUM ANALYZE')
  return (jobs / (await drain(store, 2))) * 1000
}

async function fill(store: Store, { declare, keysOf }: Variant, jobs: number): Promise<void> {
  await declare(store)
  for (let first = 0; first < jobs; first += 1000) {
    const count = Math.min(1000, jobs - first)
    await store.enqueue(Array.from({ length: count }, (_, i) => itemWith(keysOf(first + i))))
  }
}

function itemWith(limitKeys: Keys | undefined): EnqueueItem {
  const command = { jobId: nextId(), type: TYPE, queue: QUEUE }
  return {
    lifecycle: standard,
    input: INPUT,
    command: limitKeys === undefined ? command : { ...command, limitKeys },
  }
}

/** Loops that share the work; one of them may find everything taken for a moment. */
async function drain(store: Store, loops: number): Promise<number> {
  const load = { batch: BATCH, jobs: 0 }
  return timed(async () => {
    const loop = async () => {
      let held: readonly Held[] = await store.claim(requestOf(load))
      for (let empty = 0; empty < 20; ) {
        held = await settleAll(store, held, load)
        empty = held.length === 0 ? empty + 1 : 0
        if (empty > 0 && (await isDone(store))) return
      }
    }
    await Promise.all(Array.from({ length: loops }, loop))
  })
}

async function isDone(store: Store): Promise<boolean> {
  const { ready, blocked } = (await store.counts()).lanes
  return ready + blocked === 0
}

/** The time of a claim behind blocked jobs of one key, against the same claim without them. */
async function benchBlocked(
  quick: boolean,
  open: (folder: string) => Promise<Store>,
  url?: string,
): Promise<Result> {
  const blocked = quick ? 10_000 : 100_000
  return inFolder(async (folder) => {
    await using store = await open(folder)
    await store.limits.declare([{ name: 'shared/one', max: 1 }])
    const queued = async (queue: string, count: number, limitKeys?: Keys) => {
      for (let left = count; left > 0; left -= 1000) {
        const items = Array.from({ length: Math.min(1000, left) }, () => itemWith(limitKeys))
        await store.enqueue(items.map((item) => ({ ...item, command: { ...item.command, queue } })))
      }
    }
    await queued('full', blocked, ONE_KEY)
    await queued('full', 20_000)
    await queued('empty', 20_000)
    const claim = (queue: string) => async () => {
      let held: readonly Held[] = []
      const ms = await timed(async () => {
        held = await store.claim({ ...requestOf({ batch: 10, jobs: 0 }), queues: [queue] })
      })
      if (held.length !== 10) throw new Error(`claimed ${held.length} instead of 10`)
      return ms
    }
    // The first claim moves the blocked jobs out of the way.
    const skim = await timed(async () => {
      while ((await store.counts()).lanes.blocked < blocked - 1) {
        await store.claim({ ...requestOf({ batch: 10, jobs: 0 }), queues: ['full'] })
      }
    })
    process.stderr.write(`moving ${blocked} blocked jobs took ${Math.round(skim)} ms\n`)
    if (url !== undefined) await execute(url, 'VACUUM ANALYZE')
    const where = url === undefined ? '' : ' (PostgreSQL)'
    const name = `ms to claim 10 behind ${blocked} blocked, against none${where}`
    return await compare(name, 101, claim('full'), claim('empty'))
  })
}
