/** What happened, counted from the database alone. */
import { createRequire } from 'node:module'
import type { Job } from 'pawl'
import { checkFacts, checkP9, type Fact, standard } from 'pawl/rules'
import type { Store } from 'pawl/sqlite'

/** The table that the showcase ends with. */
export interface Report {
  readonly jobs: number
  readonly executions: number
  readonly crashes: number
  readonly retries: number
  /** Transfers that were booked. */
  readonly effects: number
  /** Transfers that were booked more than once. */
  readonly duplicates: number
  /** Jobs that have not succeeded. */
  readonly lost: number
  /** Broken promises, found by folding every ledger. */
  readonly findings: number
}

/** Opens the user's side of the file: a table of one's own beside Pawl's. */
export function openBooks(path: string) {
  const builtIn = process.getBuiltinModule('node:sqlite') as unknown
  const driver = builtIn ?? createRequire(import.meta.url)('@photostructure/sqlite')
  type Statement = { get(): Record<string, number> }
  type Database = { exec(sql: string): void; prepare(sql: string): Statement; close(): void }
  const { DatabaseSync } = driver as { DatabaseSync: new (path: string) => Database }
  const books = new DatabaseSync(path)
  books.exec('CREATE TABLE IF NOT EXISTS transfers (number INTEGER NOT NULL, cents INTEGER)')
  return books
}

/** Counts everything. */
export async function countAll(store: Store, path: string): Promise<Report> {
  const jobs = await allJobs(store)
  const ledgers = await Promise.all(jobs.map(({ id }) => store.facts(id)))
  const facts = ledgers.flat()
  const books = openBooks(path)
  const sql = 'SELECT count(*) AS rows, count(DISTINCT number) AS transfers FROM transfers'
  const { rows = 0, transfers = 0 } = books.prepare(sql).get()
  books.close()
  return {
    jobs: jobs.length,
    executions: jobs.reduce((sum, { attempt }) => sum + attempt, 0),
    crashes: countOf(facts, 'expire'),
    retries: countOf(facts, 'retry'),
    effects: rows,
    duplicates: rows - transfers,
    lost: jobs.filter(({ state }) => state !== 'succeeded').length,
    findings: jobs.flatMap((job, i) => findings(job, ledgers[i] ?? [])).length,
  }
}

function findings(job: Job, facts: readonly Fact[]) {
  return [...checkFacts(standard, facts), ...checkP9(job, facts)]
}

function countOf(facts: readonly Fact[], trigger: Fact['trigger']): number {
  return facts.filter((fact) => fact.trigger === trigger).length
}

async function allJobs(store: Store): Promise<Job[]> {
  const jobs: Job[] = []
  let after: string | undefined
  do {
    const page = await store.list({}, { limit: 1000, ...(after !== undefined && { after }) })
    jobs.push(...page.items)
    after = page.next
  } while (after !== undefined)
  return jobs
}
