// What history and a backlog cost: the time of a claim on a file with a million ended, 200,000
// future and 200,000 ready jobs, against the same claim on an almost empty one.
import { join } from 'node:path'
import { openSqliteStore, type Store } from 'pawl/sqlite'
import { compare, inFolder, type Result, timed } from './measure.ts'
import { openDatabase } from './reference.ts'

const ROUNDS = 61
const LIMITS = [10, 100]
const QUEUE = 'mail'

const nameOf = (limit: number) => `ms to claim ${limit}, full against empty`

/** Measures claims of several sizes; a tenth of the rows where it should be quick. */
export async function benchClaimTime(quick: boolean, only: string): Promise<Result[]> {
  const limits = LIMITS.filter((limit) => nameOf(limit).includes(only))
  if (limits.length === 0) return []
  const scale = quick ? 0.1 : 1
  return inFolder(async (folder) => {
    const [fullPath, emptyPath] = [join(folder, 'full.db'), join(folder, 'empty.db')]
    await fill(fullPath, {
      ended: 1_000_000 * scale,
      future: 200_000 * scale,
      ready: 200_000 * scale,
    })
    await fill(emptyPath, { ended: 0, future: 0, ready: 15_000 })
    await using full = await openSqliteStore({ path: fullPath })
    await using empty = await openSqliteStore({ path: emptyPath })
    const results: Result[] = []
    for (const limit of limits) {
      const own = () => claimTime(full, limit)
      results.push(await compare(nameOf(limit), ROUNDS, own, () => claimTime(empty, limit)))
    }
    return results
  })
}

async function claimTime(store: Store, limit: number): Promise<number> {
  const request = { worker: 'worker-1', queues: [QUEUE], limit, leaseMs: 600_000, start: true }
  let claimed = 0
  const ms = await timed(async () => {
    claimed = (await store.claim(request)).length
  })
  if (claimed !== limit) throw new Error(`claimed ${claimed} instead of ${limit}`)
  return ms
}

/** Fills a file by raw inserts: a row and the creating fact for each job. */
async function fill(
  path: string,
  { ended, future, ready }: { ended: number; future: number; ready: number },
): Promise<void> {
  process.stderr.write(`Filling a file: ${ended} ended, ${future} future, ${ready} ready…\n`)
  await (await openSqliteStore({ path })).close()
  const database = openDatabase(path)
  database.exec('PRAGMA synchronous = OFF')
  const now = Date.now()
  const insert = (lane: number, jobs: number, runAt: number) =>
    database.exec(`
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${jobs})
      INSERT INTO pawl_jobs (id, lane, machine, state, queue, type, priority, run_at, seq, attempt,
        created_at, updated_at, ended_at, outcome)
      SELECT printf('%08x-0000-7000-8000-%012x', ${lane}, i), ${lane},
        (SELECT id FROM pawl_machines WHERE name = 'standard'),
        CASE ${lane} WHEN 5 THEN 'succeeded' WHEN 1 THEN 'scheduled' ELSE 'queued' END,
        '${QUEUE}', 'send-mail', 0, ${runAt} + i, CASE ${lane} WHEN 5 THEN 3 ELSE 1 END,
        ${lane} = 5, ${now}, ${now}, CASE ${lane} WHEN 5 THEN ${now} + i END,
        CASE ${lane} WHEN 5 THEN 'succeeded' END
      FROM n`)
  database.exec('BEGIN')
  if (ended > 0) insert(5, ended, now - 100_000_000)
  if (future > 0) insert(1, future, now + 100_000_000)
  insert(2, ready, now - 100_000_000)
  database.exec(`
    INSERT INTO pawl_ledger (job, seq, kind, at, path, actor, payload)
    SELECT rid, 1, 10, created_at, 'created>queued', 'client', '{"to":"ann@example.org"}'
    FROM pawl_jobs`)
  database.exec('COMMIT')
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  database.close()
}
