// The ceiling: what a careful person would write by hand with `pg` for the same tables, with no
// rules, no checks and no objects: one statement for each batch, prepared once, on a connection
// with the settings that the store gives its own. It fills the same columns with the same values
// and appends the same facts with the same texts as the store does for a job of the lifecycle
// `standard` that is enqueued, claimed and committed; `postgres-stores.ts` compares the rows.
import { Client } from 'pg'
import { LEASE_MS, WORKER } from './reference.ts'

const SETTINGS = `
  SET statement_timeout = 10000;
  SET lock_timeout = 5000;
  SET idle_in_transaction_session_timeout = 15000;
  SET plan_cache_mode = force_generic_plan;
  SET enable_seqscan = off;
  SET random_page_cost = 1;
  SET jit = off`

const TX = '(SELECT pg_current_xact_id()::text::bigint)'

const ENQUEUE = `
  WITH item AS MATERIALIZED (
    SELECT id, payload
    FROM unnest($1::uuid[], $2::text[]) AS item (id, payload)
  ), added AS (
    INSERT INTO pawl.jobs (id, lane, machine, state, queue, type, priority, run_at, seq,
      created_at, updated_at, place)
    SELECT id, 2, $3, 'queued', $4, $5, 0, $6, 1, $6, $6, ${TX} FROM item
  )
  INSERT INTO pawl.ledger (tx, job, seq, kind, at, path, actor, data, payload)
  SELECT ${TX}, id, 1, 10, $6, 'created>queued', 'client', $7, payload FROM item`

const DRAIN = `
  WITH item AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::int[], $3::text[]) AS item (id, attempt, payload)
  ), done AS (
    UPDATE pawl.jobs SET lane = 5, state = 'succeeded', seq = seq + 1, status = 'D',
      lease_until = NULL, updated_at = $4, ended_at = $4, outcome = 'succeeded', place = ${TX}
    FROM item
    WHERE jobs.id = item.id AND jobs.attempt = item.attempt AND jobs.claim = $5
    RETURNING jobs.id, jobs.seq, jobs.attempt, jobs.run_at, jobs.started_at, item.payload
  ), ended AS (
    INSERT INTO pawl.ledger (tx, job, seq, kind, at, path, actor, attempt, statuses, claim,
      lease_until, data, payload)
    SELECT ${TX}, id, seq, 30, $4, 'running>succeeded', 'worker', attempt, 'CD', $5, $6,
      '{"error":null,"effects":0,"outcome":"succeeded","timing":{"queueMs":'
        || started_at - run_at || ',"durationMs":' || $4 - started_at || '}}', payload
    FROM done
  ), counted AS (
    INSERT INTO pawl.ended_counts (queue, state, jobs)
    SELECT $7, 'succeeded', count(*) FROM done HAVING count(*) > 0
  ), pick AS (
    SELECT id FROM pawl.jobs WHERE lane = 2 AND queue = $7 AND run_at <= $4
    ORDER BY priority, run_at, id LIMIT $8 FOR UPDATE SKIP LOCKED
  ), took AS (
    UPDATE pawl.jobs SET lane = 3, state = 'running', seq = seq + 1, attempt = attempt + 1,
      status = 'I', claim = $9, worker = $10, lease_until = $11, updated_at = $4, started_at = $4,
      place = ${TX}
    WHERE id = ANY (ARRAY (SELECT id FROM pick))
    RETURNING id, seq, attempt
  ), noted AS (
    INSERT INTO pawl.ledger (tx, job, seq, kind, at, path, actor, attempt, statuses, claim, worker,
      lease_until)
    SELECT ${TX}, id, seq, 20, $4, 'queued>running', 'worker', attempt, 'LI', $9, $10, $11
    FROM took
  )
  SELECT id, attempt,
    (SELECT payload FROM pawl.ledger AS fact WHERE fact.job = took.id AND fact.seq = 1) AS input
  FROM took`

/** A job that the loop holds; numbers stay the texts that the driver gives. */
export interface HeldLine {
  readonly id: string
  readonly attempt: number
  readonly input: string
}

/** The loop on one connection. */
export class PostgresReference {
  readonly #client: Client
  readonly #machine: number
  #claim: string | null = null
  #leaseUntil: number | null = null

  private constructor(client: Client, machine: number) {
    this.#client = client
    this.#machine = machine
  }

  /** Opens a connection to a database in which a store has made its tables. */
  static async open(url: string): Promise<PostgresReference> {
    const client = new Client({ connectionString: url })
    await client.connect()
    await client.query(SETTINGS)
    const sql = "SELECT id FROM pawl.machines WHERE name = 'standard'"
    const { rows } = await client.query<{ id: number }>(sql)
    return new PostgresReference(client, rows[0]?.id ?? 0)
  }

  /** Accepts jobs of one type by one statement; all but their ids and inputs is sent once. */
  async enqueue(ids: readonly string[], queue: string, type: string, input: string) {
    const now = Date.now()
    const inputs = ids.map(() => input)
    const data = createData(queue, type)
    const values = [listOf(ids), listOf(inputs), this.#machine, queue, type, now, data]
    await this.#client.query({ name: 'enqueue', text: ENQUEUE, values })
  }

  /** Commits what is held, each with its result, and claims again, by one statement. */
  async drain(
    held: readonly HeldLine[],
    results: readonly string[],
    { queue, claim, limit }: { queue: string; claim: string; limit: number },
  ): Promise<HeldLine[]> {
    const now = Date.now()
    const leaseUntil = now + LEASE_MS
    const values = [
      listOf(held.map(({ id }) => id)),
      listOf(held.map(({ attempt }) => attempt)),
      listOf(results),
      now,
      this.#claim,
      this.#leaseUntil,
      queue,
      limit,
      claim,
      WORKER,
      leaseUntil,
    ]
    const { rows } = await this.#client.query<HeldLine>({ name: 'drain', text: DRAIN, values })
    this.#claim = claim
    this.#leaseUntil = leaseUntil
    return rows
  }

  async close(): Promise<void> {
    await this.#client.end()
  }
}

/**
 * An array in the notation of PostgreSQL, faster than the driver's own. That of JSON is the same
 * between the brackets for all that stands in these: ids, numbers and JSON on one line.
 */
function listOf(values: readonly (string | number)[]): string {
  return `{${JSON.stringify(values).slice(1, -1)}}`
}

function createData(queue: string, type: string): string {
  return `{"created":{"type":${JSON.stringify(type)},"queue":${JSON.stringify(queue)},\
"lifecycle":"standard","lifecycleVersion":2}}`
}
