// The PostgreSQL store against a hand-written loop on the same driver and the same tables, on two
// connections, with a server that flushes every commit. Rates are jobs per second, so a ratio of 1
// is the speed of the loop. See docs/internals/performance.md for what the ratios should be.
import { openPostgresStore } from 'pawl/postgres'
import { compare, type Result, timed } from './measure.ts'
import { claimTime } from './postgres-claim-time.ts'
import {
  LOADS,
  type LoadPair,
  makeHistory,
  mixed,
  ratePawl,
  rateReference,
} from './postgres-loads.ts'
import { againstPeer } from './postgres-peer.ts'
import { execute, inDatabase, type Measurement, withServer } from './postgres-server.ts'
import { idsOf, itemOf, ROUNDS } from './stores.ts'

const CONNECTIONS = 2

/** How many jobs a turn has, by the size of its batches; small batches wait for the disk more. */
const JOBS: readonly (readonly [batch: number, jobs: number])[] = [
  [1, 1000],
  [10, 5000],
  [100, 20_000],
  [500, 50_000],
]

/** Measures everything, or what has `only` in its name. */
export async function benchPostgres(options: { quick: boolean; only?: string }): Promise<Result[]> {
  const { quick, only = '' } = options
  const loads = JOBS.flatMap(([batch, jobs]) => LOADS.map((pair) => loadOf(pair, batch, jobs)))
  const wanted = [...loads, callers, claimTime, againstPeer]
    .map(({ names, run }) => ({ names: names.filter((name) => name.includes(only)), run }))
    .filter(({ names }) => names.length > 0)
  if (wanted.length === 0) return []
  return withServer(async (serverUrl) => {
    await assertSameRows(serverUrl)
    const results: Result[] = []
    for (const { names, run } of wanted) results.push(...(await run(serverUrl, names, quick)))
    return results
  })
}

/** Each turn in a copy of a database with some history. */
function loadOf(pair: LoadPair, batch: number, jobs: number): Measurement {
  const name = `postgres: ${pair.name}, batches of ${batch}`
  return {
    names: [name],
    run: (serverUrl, _, quick) => {
      const load = { batch, jobs: quick ? jobs / 10 : jobs, loops: CONNECTIONS }
      return inDatabase(serverUrl, async (historyUrl, history) => {
        await makeHistory(historyUrl)
        const rate = (side: typeof ratePawl) => () =>
          inDatabase(serverUrl, (url) => side(url, load, pair), history)
        return [await compare(name, ROUNDS, rate(ratePawl), rate(rateReference))]
      })
    },
  }
}

/** Group commit: callers of the same moment share a statement. One caller is the reference. */
const callers: Measurement = {
  names: ['postgres: enqueue one by one, 50 callers against 1'],
  run: async (serverUrl, [name = ''], quick) => {
    const jobs = quick ? 200 : 2000
    const own = () => inDatabase(serverUrl, (url) => rateOfCallers(url, 50, jobs * 10))
    const other = () => inDatabase(serverUrl, (url) => rateOfCallers(url, 1, jobs))
    return [await compare(name, ROUNDS, own, other)]
  },
}

async function rateOfCallers(url: string, callers: number, jobs: number): Promise<number> {
  await using store = await openPostgresStore({ connectionString: url })
  const items = idsOf(jobs).map(itemOf).values()
  const call = async () => {
    for (const item of items) await store.enqueue([item])
  }
  const ms = await timed(async () => {
    await Promise.all(Array.from({ length: callers }, call))
  })
  return (jobs / ms) * 1000
}

/** Plays a few jobs on both sides and compares the rows: the same work must have been done. */
export async function assertSameRows(serverUrl: string): Promise<void> {
  const load = { batch: 3, jobs: 9, loops: 1 }
  const dumpAfter = (rate: typeof ratePawl) =>
    inDatabase(serverUrl, async (url) => {
      await rate(url, load, mixed)
      return dump(url)
    })
  const own = await dumpAfter(ratePawl)
  const other = await dumpAfter(rateReference)
  const place = own.findIndex((row, i) => row !== other[i])
  if (place < 0 && own.length === other.length) return
  throw new Error(`The two sides write different rows:\n${own[place]}\n${other[place]}`)
}

/** All rows as text, but for ids and times. */
async function dump(url: string): Promise<string[]> {
  const rows: unknown[] = []
  for (const [table, order] of [
    ['jobs', 'id'],
    ['ledger', 'job, seq'],
    ['ended_counts', 'ctid'],
  ]) {
    rows.push(...(await execute(url, `SELECT * FROM pawl.${table} ORDER BY ${order}`)))
  }
  return rows.map((row) =>
    JSON.stringify(row)
      .replace(/"(tx|place)":"\d+"/g, '(transaction)')
      .replace(/\b\d{13}\b/g, '(time)')
      .replace(/Ms\\":\d+/g, 'Ms: (length)')
      .replace(/[0-9a-f]{8}(-[0-9a-f]+){4}/g, '(id)'),
  )
}
