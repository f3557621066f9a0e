// One of several processes that work on jobs with limits until it is killed: it claims, holds jobs
// for a moment, reports or abandons them, and does what every worker does for the others.
import { openPostgresStore } from 'pawl/postgres'
import { openSqliteStore } from 'pawl/sqlite'
import { SeededRandom } from 'pawl/testing'

const { path, url, schema, worker, seed, ends } = JSON.parse(process.argv[2])
const random = new SeededRandom(seed)
const below = (n) => Math.floor(random.next() * n)
const store = url
  ? await openPostgresStore({ connectionString: url, schema, connections: 2 })
  : await openSqliteStore({ path, durability: 'relaxed' })
const failure = { class: 'retryable', kind: 'transient', message: 'not now' }

/** What is reported of a job; nothing if it is left to its lease. */
function reportOf({ job }) {
  const fence = { attempt: job.attempt, claim: job.execution.claim }
  const kind = below(20)
  if (kind === 0 && !ends) return undefined
  if (kind < 3) return { kind: 'release', fence }
  if (kind < 5) return { kind: 'fail', fence, failure }
  return { kind: 'commit', fence }
}

for (;;) {
  try {
    await store.recover(100)
    await store.promote(100)
    const request = () => ({ worker, limit: 1 + below(15), leaseMs: 400, start: true })
    let held = await store.claim(request())
    for (let turn = 0; turn < 20 && held.length > 0; turn++) {
      await new Promise((resume) => setTimeout(resume, below(8)))
      const settlements = held.flatMap((one) => {
        const command = reportOf(one)
        return command === undefined ? [] : { held: one, command, payload: '1' }
      })
      const next = below(3) > 0 ? request() : undefined
      held = (await store.settle(settlements, next)).claimed
    }
    if (held.length === 0) await new Promise((resume) => setTimeout(resume, 5))
    if (!ends) continue
    const { ready, held: holding, blocked, waiting } = (await store.counts()).lanes
    if (ready + holding + blocked + waiting === 0) break
  } catch (error) {
    process.stderr.write(`${error.code ?? error.stack}: ${error.message}\n`)
    if (error.code !== 'E_STORE_BUSY') process.exit(1)
  }
}
await store.close()
