// What history and a backlog cost: the time of a claim in a database with a million ended, 200,000
// future and 200,000 ready jobs, against the same claim in an almost empty one.
import { openPostgresStore, type Store } from 'pawl/postgres'
import { compare, type Result, timed } from './measure.ts'
import { execute, inDatabase, type Measurement } from './postgres-server.ts'
import { QUEUE, requestOf, TYPE } from './stores.ts'

const ROUNDS = 61
const LIMITS = [10, 100]

const nameOf = (limit: number) => `postgres: ms to claim ${limit}, full against empty`

/** Claims of several sizes, on the same two databases. */
export const claimTime: Measurement = {
  names: LIMITS.map(nameOf),
  run: (serverUrl, names, quick) =>
    inDatabase(serverUrl, (fullUrl) =>
      inDatabase(serverUrl, async (emptyUrl) => {
        const scale = quick ? 0.1 : 1
        await fill(fullUrl, [1_000_000 * scale, 200_000 * scale, 200_000 * scale])
        await fill(emptyUrl, [0, 0, 15_000])
        await using full = await openPostgresStore({ connectionString: fullUrl })
        await using empty = await openPostgresStore({ connectionString: emptyUrl })
        const results: Result[] = []
        for (const limit of LIMITS.filter((limit) => names.includes(nameOf(limit)))) {
          const own = () => timeOf(full, limit)
          results.push(await compare(nameOf(limit), ROUNDS, own, () => timeOf(empty, limit)))
        }
        return results
      }),
    ),
}

async function timeOf(store: Store, limit: number): Promise<number> {
  const request = { ...requestOf({ batch: limit, jobs: limit }), leaseMs: 600_000 }
  let claimed = 0
  const ms = await timed(async () => {
    claimed = (await store.claim(request)).length
  })
  if (claimed !== limit) throw new Error(`claimed ${claimed} instead of ${limit}`)
  return ms
}

/** Fills a database by raw inserts: a row and the creating fact for each job. */
async function fill(url: string, jobs: readonly [ended: number, future: number, ready: number]) {
  const [ended, future, ready] = jobs
  process.stderr.write(`Filling a database: ${ended} ended, ${future} future, ${ready} ready…\n`)
  await (await openPostgresStore({ connectionString: url })).close()
  const now = Date.now()
  await insert(url, { lane: 5, jobs: ended, now, runAt: now - 100_000_000 })
  await insert(url, { lane: 1, jobs: future, now, runAt: now + 100_000_000 })
  await insert(url, { lane: 2, jobs: ready, now, runAt: now - 100_000_000 })
  await execute(
    url,
    `INSERT INTO pawl.ledger (tx, job, seq, kind, at, path, actor, payload)
    SELECT pg_current_xact_id()::text::bigint, id, 1, 10, created_at, 'created>queued', 'client',
      '{"to":"ann@example.org"}'
    FROM pawl.jobs`,
  )
  await execute(url, 'VACUUM ANALYZE')
}

interface Rows {
  readonly lane: 1 | 2 | 5
  readonly jobs: number
  readonly now: number
  readonly runAt: number
}

const STATES = { 1: 'scheduled', 2: 'queued', 5: 'succeeded' }

async function insert(url: string, { lane, jobs, now, runAt }: Rows): Promise<void> {
  const isEnded = lane === 5
  await execute(
    url,
    `INSERT INTO pawl.jobs (id, lane, machine, state, queue, type, priority, run_at, seq, attempt,
      created_at, updated_at, ended_at, outcome)
    SELECT format('%s-0000-7000-8000-%s', lpad('${lane}', 8, '0'), lpad(to_hex(i), 12, '0'))::uuid,
      ${lane}, (SELECT id FROM pawl.machines WHERE name = 'standard'), '${STATES[lane]}',
      '${QUEUE}', '${TYPE}', 0, ${runAt}::bigint + i, ${isEnded ? 3 : 1}, ${isEnded ? 1 : 0},
      ${now}, ${now}, ${isEnded ? `${now}::bigint + i, 'succeeded'` : 'NULL, NULL'}
    FROM generate_series(1, ${jobs}) AS i`,
  )
}
