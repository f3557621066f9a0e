// Both kinds of store, with raw SQL into their tables, and jobs in every place that the doctor may
// have to look at.
import { join } from 'node:path'
import type { Job } from 'pawl'
import { type Fact, standard } from 'pawl/rules'
import { type TestEnvironment, testEnvironment } from 'pawl/testing'
import { onTestFinished } from 'vitest'
import { laneOf } from '../../src/core/job/lanes.ts'
import type { Aside, Mending, StoredJob } from '../../src/stores/contract/examination.ts'
import type { Held, Ref, Store } from '../../src/stores/contract/store.ts'
import { openPostgresStore } from '../../src/stores/postgres/open.ts'
import type { SoundnessOptions } from '../../src/stores/soundness.ts'
import { loadDriver } from '../../src/stores/sqlite/driver.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { freshFolder } from '../processes/folder.ts'
import { connected } from '../support/postgres/clients.ts'
import { freshStoreDatabase } from '../support/postgres/databases.ts'

type Row = Record<string, unknown>

/** A store, a second process on the same tables, and the tables themselves. */
export interface Examined {
  readonly environment: TestEnvironment
  readonly store: Store
  /** Another connection to the same tables, as another process has it. */
  again(options?: SoundnessOptions): Promise<Store>
  /** Runs a statement in which `@` stands before the names of tables. */
  sql(text: string): Promise<Row[]>
  /** The column by which a job, or what belongs to it, is found by its ref, in a table. */
  readonly refColumn: 'rid' | 'id'
  /** Ways to find out what there is to be lost. */
  readonly names: Readonly<Record<'trigger' | 'index' | 'constraint', () => Promise<Named[]>>>
}

/** An object, and how to remove it. */
interface Named {
  readonly name: string
  readonly drop: string
}

async function onFile(): Promise<Examined> {
  const path = join(freshFolder(), 'jobs.db')
  const environment = testEnvironment()
  const again = (options: SoundnessOptions = {}) =>
    opened(openSqliteStore({ path, environment, ...options }))
  const store = await again()
  const { DatabaseSync } = loadDriver()
  const raw = new DatabaseSync(path)
  onTestFinished(() => raw.close())
  const sql = async (text: string) => raw.prepare(text.replaceAll('@', 'pawl_')).all() as Row[]
  const named = (kind: string) => async () => {
    const rows = await sql(
      `SELECT name FROM sqlite_master WHERE type = '${kind}' AND sql IS NOT NULL ORDER BY name`,
    )
    return rows.map(({ name }) => ({ name: `${name}`, drop: `DROP ${kind} ${name}` }))
  }
  const names = { trigger: named('trigger'), index: named('index'), constraint: async () => [] }
  return { environment, store, again, sql, names, refColumn: 'rid' }
}

async function onServer(): Promise<Examined> {
  const connectionString = await freshStoreDatabase()
  const environment = testEnvironment()
  const fixed = { connectionString, environment, clock: 'environment', connections: 3 } as const
  const again = (options: SoundnessOptions = {}) =>
    opened(openPostgresStore({ ...fixed, ...options }))
  const store = await again()
  const raw = await connected(connectionString)
  const sql = async (text: string) => {
    const { rows } = await raw.query<Row>(text.replaceAll('@', 'pawl.'))
    return rows
  }
  const named = (text: string) => async () => (await sql(text)) as unknown as Named[]
  const names = {
    trigger: named(`SELECT tgname AS name, 'DROP TRIGGER ' || tgname || ' ON ' || tgrelid::regclass
      AS drop FROM pg_trigger WHERE NOT tgisinternal ORDER BY tgname`),
    index: named(`SELECT indexname AS name, 'DROP INDEX pawl.' || indexname AS drop
      FROM pg_indexes WHERE schemaname = 'pawl'
      AND indexname NOT IN (SELECT conname FROM pg_constraint) ORDER BY indexname`),
    constraint: named(`SELECT conname AS name, 'ALTER TABLE ' || conrelid::regclass
      || ' DROP CONSTRAINT ' || conname AS drop FROM pg_constraint
      WHERE connamespace = 'pawl'::regnamespace AND contype IN ('c', 'p', 'u') ORDER BY conname`),
  }
  return { environment, store, again, sql, names, refColumn: 'id' }
}

async function opened(opening: Promise<Store>): Promise<Store> {
  const store = await opening
  onTestFinished(() => store.close())
  return store
}

/** Both kinds. */
export const STORES = [
  { name: 'a SQLite file', open: onFile },
  { name: 'PostgreSQL', open: onServer },
] as const

const LEASE_MS = 600_000
const OPERATOR = { actor: 'operator', operator: 'ann', note: 'because' } as const

/** Enqueues a job, and answers its id. */
export async function enqueue({ store, environment }: Examined, queue: string): Promise<string> {
  const jobId = environment.ids.next()
  const command = { jobId, type: 'mail', queue }
  await store.enqueue([{ lifecycle: standard, command, input: '{"to":"ann"}' }])
  return jobId
}

/** Enqueues a job and claims it. */
export async function claim(examined: Examined, queue: string): Promise<Held> {
  await enqueue(examined, queue)
  const request = { worker: 'w1', queues: [queue], limit: 1, leaseMs: LEASE_MS, start: true }
  const [held] = await examined.store.claim(request)
  if (held === undefined) throw new Error('nothing was claimed')
  return held
}

/** A job that has succeeded, by its id. */
export async function succeeded(examined: Examined, queue: string): Promise<string> {
  const held = await claim(examined, queue)
  const fence = { attempt: held.job.attempt, claim: held.job.execution?.claim ?? '' }
  await examined.store.settle([{ held, command: { kind: 'commit', fence }, payload: '"sent"' }])
  return held.job.id
}

/** One job in each place, by its id. */
export async function fill(examined: Examined) {
  const { store } = examined
  const ready = await enqueue(examined, 'ready')
  const parked = await enqueue(examined, 'parked')
  await store.applyCommand([parked], { kind: 'park' }, OPERATOR)
  const failed = await enqueue(examined, 'failed')
  await store.applyCommand([failed], { kind: 'park' }, OPERATOR)
  await store.applyCommand([failed], { kind: 'discard' }, OPERATOR)
  const held = await claim(examined, 'held')
  const delivering = await claim(examined, 'delivering')
  await store.commit(delivering, (tx) => {
    tx.effect('mail', '{"n":1}')
    tx.effect('call', '{"n":2}')
    return '"told"'
  })
  return {
    ready,
    parked,
    failed,
    held: held.job.id,
    delivering: delivering.job.id,
    succeeded: await succeeded(examined, 'succeeded'),
  }
}

/** All stored jobs, by pages of so many jobs. */
export async function allStoredJobs({ store }: Examined, limit: number): Promise<StoredJob[]> {
  const all: StoredJob[] = []
  for (;;) {
    const page = await store.examination.storedJobs(all[all.length - 1]?.ref, limit)
    if (page.length === 0) return all
    all.push(...page)
  }
}

/** A stored job, by its id. */
export async function storedJobOf(examined: Examined, id: string): Promise<StoredJob> {
  const found = (await allStoredJobs(examined, 100)).find(({ row }) => row?.id === id)
  if (found === undefined) throw new Error(`there is no stored of ${id}`)
  return found
}

/** The handle of a job by its id. */
export async function refOf(examined: Examined, id: string): Promise<Ref> {
  return (await storedJobOf(examined, id)).ref
}

/** Rebuilds a table of a SQLite file as somebody might who wants to be rid of its rules. */
export async function loosen({ sql }: Examined, name: string): Promise<void> {
  const [table] = await sql(`SELECT sql FROM sqlite_master WHERE name = '${name}'`)
  const loose = String(table?.sql)
    .replaceAll(/CHECK \((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)/g, '')
    .replaceAll(/UNIQUE( \([^()]*\))?/g, '')
    .replaceAll(/,(\s*,)+/g, ',')
    .replaceAll(/,\s*\)/g, ')')
  if (/CHECK|UNIQUE/.test(loose)) throw new Error(`still has rules: ${loose}`)
  await sql('PRAGMA foreign_keys = OFF')
  await sql('PRAGMA legacy_alter_table = ON')
  await sql(loose.replace(name, 'loose'))
  await sql(`INSERT INTO loose SELECT * FROM ${name}`)
  await sql(`DROP TABLE ${name}`)
  await sql(`ALTER TABLE loose RENAME TO ${name}`)
}

/** Takes from the table of jobs what makes ids unique and keeps counts from falling below zero. */
export async function loosenJobs(examined: Examined): Promise<void> {
  const { names, sql } = examined
  const own = (await names.constraint()).filter(({ name }) => name.startsWith('jobs_'))
  for (const { drop } of own) await sql(drop)
  if (own.length === 0) await loosen(examined, 'pawl_jobs')
}

/** Lets time pass, and the real world answer, until a condition holds. */
export async function until(
  { environment, sql }: Examined,
  condition: () => boolean | Promise<boolean>,
  stepMs = 100,
): Promise<void> {
  for (let step = 0; step < 5000; step++) {
    if (await condition()) return
    environment.advance(stepMs)
    await sql('SELECT 1')
    for (let turn = 0; turn < 8; turn++) await new Promise((done) => setImmediate(done))
  }
  throw new Error('it never came true')
}

/** What makes another job of one, with the fact that says so. */
export function mendingOf(
  before: Job,
  changes: Partial<Job>,
  now: number,
  aside: readonly Aside[] = [],
): Mending & { readonly after: NonNullable<Mending['after']> } {
  const job: Job = { ...before, ...changes, seq: before.seq + 1, updatedAt: now }
  const fact: Fact = {
    version: 1,
    jobId: job.id,
    seq: job.seq,
    at: now,
    trigger: 'repair',
    from: before.state,
    to: job.state,
    actor: 'doctor',
    operator: 'ann',
    reason: 'damaged',
    note: 'because',
    rebased: job,
  }
  const lane = laneOf(standard, job, now)
  const leaseUntil = job.execution?.leaseUntil ?? null
  return { why: 'damaged', aside, after: { lifecycle: standard, job, lane, leaseUntil, fact } }
}
