// What a test looks at after processes have died: the file as it is, row by row and fact by fact.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Job } from 'pawl'
import { checkFacts, checkP9, type Fact, LIFECYCLES } from 'pawl/rules'
import type { Store } from 'pawl/sqlite'
import { type Database, loadDriver } from '../../src/stores/sqlite/driver.ts'

/** A handle of the test's own on a file, apart from any store. */
export function openRaw(path: string): Database {
  const { DatabaseSync } = loadDriver()
  return new DatabaseSync(path, { timeout: 5000 })
}

/** Runs one query on a file with a handle of its own. */
export function rowsOf<Row>(path: string, sql: string): Row[] {
  const database = openRaw(path)
  try {
    return database.prepare(sql).all() as Row[]
  } finally {
    database.close()
  }
}

/** Runs statements with a handle that keeps none of them prepared, so that it closes at once. */
export function execute(path: string, ...statements: readonly string[]): void {
  const database = openRaw(path)
  for (const sql of statements) database.exec(sql)
  database.close()
}

/** Every row of every table: two files with equal dumps hold the same. */
export function dumpOf(path: string): Record<string, unknown[]> {
  const database = openRaw(path)
  try {
    const tables = database
      .prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name`)
      .all() as { name: string }[]
    return Object.fromEntries(
      tables.map(({ name }) => {
        const rows = database.prepare(`SELECT * FROM "${name}"`).all()
        return [name, rows.map((row) => JSON.stringify(row)).sort()]
      }),
    )
  } finally {
    database.close()
  }
}

/** What SQLite itself finds wrong with a file; "ok" alone where it finds nothing. */
export function integrityOf(path: string): string[] {
  const found = rowsOf<{ integrity_check: string }>(path, 'PRAGMA integrity_check')
  return found.map(({ integrity_check }) => integrity_check)
}

/** Every job of a store, in pages. */
export async function allJobs(store: Store): Promise<Job[]> {
  const jobs: Job[] = []
  let after: string | undefined
  do {
    const page = await store.list({}, { limit: 1000, ...(after !== undefined && { after }) })
    jobs.push(...page.items)
    after = page.next
  } while (after !== undefined)
  return jobs
}

/** What breaks a promise in the ledger of one job. */
export function brokenBy(facts: readonly Fact[]): string[] {
  const created = facts[0]?.created
  const lifecycle = LIFECYCLES.find(({ name }) => name === created?.lifecycle)
  if (lifecycle === undefined) return [`the lifecycle ${created?.lifecycle} is unknown`]
  return checkFacts(lifecycle, facts).map(
    ({ promise, seq, what }) => `${facts[0]?.jobId} at ${seq}: ${promise}: ${what}`,
  )
}

/** What breaks a promise in any job of a store: in its facts, or in its row as their fold. */
export async function brokenPromises(store: Store): Promise<string[]> {
  const broken: string[] = []
  for (const { id } of await allJobs(store)) {
    const { job, facts } = await readAtRest(store, id)
    const p9 = checkP9(job, facts).map(({ what }) => `${job.id}: P9: ${what}`)
    broken.push(...brokenBy(facts), ...p9)
  }
  return broken
}

/**
 * Reads a job and its facts. Another process may write between the two reads; then they are of
 * different moments, and both are read again.
 */
async function readAtRest(store: Store, id: string): Promise<{ job: Job; facts: Fact[] }> {
  for (let tries = 0; tries < 100; tries++) {
    const job = await store.get(id)
    const facts = await store.facts(id)
    const after = await store.get(id)
    if (job !== undefined && after?.seq === job.seq) return { job, facts }
  }
  throw new Error(`job ${id} changed between every two reads`)
}

/** The ledgers in an archive of retention; of a job that was archived again, the longest one. */
export function archivedLedgers(lines: string): Map<string, Fact[]> {
  const ledgers = new Map<string, Map<number, Fact>>()
  for (const line of lines.split('\n').filter((text) => text !== '')) {
    const { fact } = JSON.parse(line) as { fact: Fact }
    const ledger = ledgers.get(fact.jobId) ?? new Map<number, Fact>()
    ledgers.set(fact.jobId, ledger.set(fact.seq, fact))
  }
  return new Map(
    [...ledgers].map(([id, facts]) => [id, [...facts.values()].sort((a, b) => a.seq - b.seq)]),
  )
}

/** The results of the jobs in an archive that were committed. */
export function archivedResults(lines: string): Map<string, string | null> {
  const kept = lines.split('\n').filter((text) => text !== '')
  const parsed = kept.map((line) => JSON.parse(line) as { fact: Fact; payload: string | null })
  const commits = parsed.filter(({ fact }) => fact.trigger === 'commit')
  return new Map(commits.map(({ fact, payload }) => [fact.jobId, payload]))
}

/** The hash of a file's bytes. */
export function sha256Of(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}
