// The ceiling: what a careful person would write by hand on the same driver for the same tables,
// with no rules, no checks and no objects. It fills the same columns with the same values and
// appends the same facts with the same texts as the store does for a job of the lifecycle
// `standard` that is enqueued, claimed and committed; `stores.ts` compares the files to be sure.
import { createRequire } from 'node:module'
import { crc32 } from 'node:zlib'

interface Statement {
  run(...values: (string | number | null)[]): { lastInsertRowid: number | bigint }
  get(...values: (string | number | null)[]): unknown
  all(...values: (string | number | null)[]): unknown[]
}

/** An open database of either driver. */
export interface Database {
  prepare(sql: string): Statement
  exec(sql: string): void
  close(): void
}

/** Opens a file as the store does, with the driver that the store takes. */
export function openDatabase(path: string): Database {
  const builtIn = process.getBuiltinModule('node:sqlite') as unknown
  const driver = builtIn ?? createRequire(import.meta.url)('@photostructure/sqlite')
  const { DatabaseSync } = driver as { DatabaseSync: new (path: string) => Database }
  const database = new DatabaseSync(path)
  database.exec('PRAGMA journal_mode = WAL')
  database.exec('PRAGMA synchronous = FULL')
  database.exec('PRAGMA foreign_keys = ON')
  database.exec('PRAGMA journal_size_limit = 67108864')
  database.exec('PRAGMA cache_size = -65536')
  return database
}

/** A job that the loop holds. */
export interface HeldRow {
  readonly rid: number
  readonly attempt: number
  readonly seq: number
  readonly run_at: number
  readonly started_at: number
  readonly input: string
}

const INSERT_JOB = `
  INSERT INTO pawl_jobs (id, lane, machine, state, queue, type, priority, run_at, seq, created_at,
    updated_at)
  VALUES (?, 2, ?, 'queued', ?, ?, 0, ?, 1, ?, ?)`
const INSERT_CREATE = `
  INSERT INTO pawl_ledger (job, seq, kind, at, path, actor, data, payload, creates)
  VALUES (?, 1, 10, ?, 'created>queued', 'client', ?, ?, ?)`
const COMMIT_JOB = `
  UPDATE pawl_jobs SET lane = 5, state = 'succeeded', seq = seq + 1, status = 'D',
    lease_until = NULL, updated_at = ?, ended_at = ?, outcome = 'succeeded'
  WHERE rid = ? AND attempt = ? AND claim = ?`
const INSERT_COMMIT = `
  INSERT INTO pawl_ledger (job, seq, kind, at, path, actor, attempt, statuses, claim, lease_until,
    data, payload)
  VALUES (?, ?, 30, ?, 'running>succeeded', 'worker', ?, 'CD', ?, ?, ?, ?)`
const COUNT_ENDED = `
  INSERT INTO pawl_ended_counts (queue, state, jobs) VALUES (?, 'succeeded', ?)
  ON CONFLICT (queue, state) DO UPDATE SET jobs = jobs + excluded.jobs`
const CLAIM = `
  UPDATE pawl_jobs SET lane = 3, state = 'running', seq = seq + 1, attempt = attempt + 1,
    status = 'I', claim = ?, worker = ?, lease_until = ?, updated_at = ?, started_at = ?
  WHERE rid IN (
    SELECT rid FROM pawl_jobs WHERE lane = 2 AND queue = ?
    ORDER BY priority, run_at, rid LIMIT ?)
  RETURNING rid, attempt, seq, run_at, started_at`
const INSERT_CLAIM = `
  INSERT INTO pawl_ledger (job, seq, kind, at, path, actor, attempt, statuses, claim, worker,
    lease_until)
  VALUES (?, ?, 20, ?, 'queued>running', 'worker', ?, 'LI', ?, ?, ?)`
const SELECT_INPUT = 'SELECT payload FROM pawl_ledger WHERE job = ? AND seq = 1'

/** The loop on one file. */
export class Reference {
  readonly #database: Database
  readonly #machine: number
  readonly #statements: Record<keyof typeof TEXTS, Statement>
  #claim = ''
  #leaseUntil = 0

  constructor(path: string) {
    this.#database = openDatabase(path)
    const sql = "SELECT id FROM pawl_machines WHERE name = 'standard'"
    this.#machine = (this.#database.prepare(sql).get() as { id: number }).id
    this.#statements = Object.fromEntries(
      Object.entries(TEXTS).map(([name, text]) => [name, this.#database.prepare(text)]),
    ) as Record<keyof typeof TEXTS, Statement>
  }

  /** Accepts jobs in one transaction. */
  enqueue(ids: readonly string[], queue: string, type: string, input: string): void {
    const { insertJob, insertCreate } = this.#statements
    const now = Date.now()
    this.#database.exec('BEGIN IMMEDIATE')
    for (const id of ids) {
      const { lastInsertRowid } = insertJob.run(id, this.#machine, queue, type, now, now, now)
      const creates = `${id}-${crc32(id).toString(16).padStart(8, '0')}`
      insertCreate.run(Number(lastInsertRowid), now, createData(queue, type), input, creates)
    }
    this.#database.exec('COMMIT')
  }

  /** Commits what is held and claims again, in one transaction. */
  drain(held: readonly HeldRow[], queue: string, claim: string, limit: number): HeldRow[] {
    this.#database.exec('BEGIN IMMEDIATE')
    const now = Date.now()
    this.#commit(held, queue, now)
    const claimed = this.#claimFrom(queue, claim, limit, now)
    this.#database.exec('COMMIT')
    return claimed
  }

  #commit(held: readonly HeldRow[], queue: string, now: number): void {
    const { commitJob, insertCommit, countEnded } = this.#statements
    for (const row of held) {
      const { rid, attempt, seq } = row
      commitJob.run(now, now, rid, attempt, this.#claim)
      const fence = [attempt, this.#claim, this.#leaseUntil] as const
      insertCommit.run(rid, seq + 1, now, ...fence, commitData(row, now), RESULT)
    }
    if (held.length > 0) countEnded.run(queue, held.length)
  }

  #claimFrom(queue: string, claim: string, limit: number, now: number): HeldRow[] {
    const { take, insertClaim, selectInput } = this.#statements
    const leaseUntil = now + LEASE_MS
    const rows = take.all(claim, WORKER, leaseUntil, now, now, queue, limit) as HeldRow[]
    this.#claim = claim
    this.#leaseUntil = leaseUntil
    return rows.map((row) => {
      const { rid, attempt, seq } = row
      insertClaim.run(rid, seq, now, attempt, claim, WORKER, leaseUntil)
      const { payload } = selectInput.get(rid) as { payload: string }
      return { ...row, input: payload }
    })
  }

  close(): void {
    this.#database.close()
  }
}

const TEXTS = {
  insertJob: INSERT_JOB,
  insertCreate: INSERT_CREATE,
  commitJob: COMMIT_JOB,
  insertCommit: INSERT_COMMIT,
  countEnded: COUNT_ENDED,
  take: CLAIM,
  insertClaim: INSERT_CLAIM,
  selectInput: SELECT_INPUT,
}

/** Who claims, for how long, and what every job comes to; the same on both sides. */
export const WORKER = 'worker-1'
export const LEASE_MS = 30_000
export const RESULT = '{"sent":true}'

function commitData({ run_at, started_at }: HeldRow, now: number): string {
  return `{"error":null,"effects":0,"outcome":"succeeded",\
"timing":{"queueMs":${started_at - run_at},"durationMs":${now - started_at}}}`
}

/** Made for each job, because jobs of one batch may differ in all of it. */
function createData(queue: string, type: string): string {
  return `{"created":{"type":${JSON.stringify(type)},"queue":${JSON.stringify(queue)},\
"lifecycle":"standard","lifecycleVersion":2}}`
}
