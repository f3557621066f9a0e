/**
 * Writes golden stores of the present version to `test/golden/<name>/`: a SQLite file, a dump of a
 * PostgreSQL schema, a folder of runs, and `expected.json` with what they contain. Later versions
 * must open them and go on working; `test/stores/golden.test.ts` checks that. Run it once for each
 * released version, and never write over a version that was released.
 *
 *   npm run golden -- --name v0.1.0 --postgres postgres://… [--pg-dump pg_dump]
 *
 * `pg_dump` must not be older than the server.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Job } from 'pawl'
import { openPostgresStore } from 'pawl/postgres'
import { openStoreJournal } from 'pawl/runs'
import { openSqliteStore, type Store } from 'pawl/sqlite'
import { testEnvironment } from 'pawl/testing'
import { GOLDEN_LIFECYCLES, playHistory } from './golden/history.ts'
import { playRuns } from './golden/runs.ts'

const { values } = parseArgs({
  options: {
    name: { type: 'string' },
    postgres: { type: 'string' },
    'pg-dump': { type: 'string', default: 'pg_dump' },
  },
})
const { name, postgres } = values
if (name === undefined || postgres === undefined) {
  throw new Error('Usage: npm run golden -- --name <version> --postgres <url>')
}
const folder = join('test/golden', name)
if (existsSync(folder)) throw new Error(`${folder} exists: golden stores are never rewritten`)
mkdirSync(folder, { recursive: true })

await playRuns(() => ({ folder: join(folder, 'runs') }))
const expected = {
  sqlite: await writeSqlite(join(folder, 'store.db')),
  postgres: await writePostgres(postgres, join(folder, 'store.sql')),
}
writeFileSync(join(folder, 'expected.json'), `${JSON.stringify(expected, null, 1)}\n`)

async function writeSqlite(path: string) {
  const environment = testEnvironment()
  const lifecycles = GOLDEN_LIFECYCLES
  await using store = await openSqliteStore({ path, environment, lifecycles })
  await playHistory({ store, environment })
  await playRuns(() => ({ journal: openStoreJournal({ store }) }))
  return await contentsOf(store)
}

async function writePostgres(connectionString: string, path: string) {
  const environment = testEnvironment()
  const fixed = { connectionString, environment, clock: 'environment', connections: 2 } as const
  await using store = await openPostgresStore({ ...fixed, lifecycles: GOLDEN_LIFECYCLES })
  await playHistory({ store, environment })
  await playRuns(() => ({ journal: openStoreJournal({ store }) }))
  const contents = await contentsOf(store)
  const dump = ['--schema=pawl', '--inserts', '--no-owner', '--no-privileges', connectionString]
  const text = execFileSync(values['pg-dump'], dump, { encoding: 'utf8', maxBuffer: 2 ** 28 })
  // Commands of psql, and settings that other servers do not know, are not part of the store.
  const lines = text.split('\n').filter((line) => !/^(\\|SET transaction_timeout|--)/.test(line))
  writeFileSync(path, lines.join('\n').replaceAll(/\n{3,}/g, '\n\n'))
  return contents
}

async function contentsOf(store: Store) {
  const jobs: Job[] = []
  for (let after: string | undefined; ; ) {
    const page = await store.list({}, { limit: 100, ...(after !== undefined && { after }) })
    jobs.push(...page.items)
    after = page.next
    if (after === undefined) break
  }
  const { items: effects } = await store.listEffects({}, { limit: 1000 })
  return { jobs, counts: await store.counts(), effects, queues: await store.listQueues() }
}
