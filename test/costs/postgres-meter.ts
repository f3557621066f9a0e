// Counts what a PostgreSQL store sends, and what the server writes to its log for it.
import type pg from 'pg'

/** What has been done so far. */
export interface PostgresCost {
  /** Messages that the client sends and waits for. */
  readonly roundTrips: number
  /** Statements in them, without BEGIN and COMMIT. */
  readonly statements: number
}

/** What the log says of a stretch. */
export interface Written {
  /** Versions of rows that were inserted, changed or deleted. */
  readonly rows: number
  /** Pages of tables and indexes that were changed. */
  readonly pages: number
}

/** Counts what is sent over a pool. */
export class PostgresMeter {
  #roundTrips = 0
  #statements = 0

  watch(pool: pg.Pool): void {
    pool.on('connect', (client) => {
      const query = client.query.bind(client) as (asked: pg.QueryConfig) => Promise<unknown>
      const counting = (asked: pg.QueryConfig) => {
        this.#roundTrips++
        this.#statements += statementsIn(asked)
        return query(asked)
      }
      Object.assign(client, { query: counting })
    })
  }

  get cost(): PostgresCost {
    return { roundTrips: this.#roundTrips, statements: this.#statements }
  }
}

/** A text without values may have several statements. */
function statementsIn({ text, values }: pg.QueryConfig): number {
  const all = values === undefined ? text.split(';') : [text]
  const own = all.map((one) => one.trim()).filter((one) => !/^(BEGIN|COMMIT|$)/i.test(one))
  return own.length
}

/** Reads the server's log of writes. */
export class WrittenLog {
  readonly #client: pg.Client
  readonly #schema: string

  constructor(client: pg.Client, schema: string) {
    this.#client = client
    this.#schema = schema
  }

  async prepare(): Promise<void> {
    await this.#client.query('CREATE EXTENSION IF NOT EXISTS pg_walinspect')
  }

  async position(): Promise<string> {
    const { rows } = await this.#client.query('SELECT pg_current_wal_insert_lsn()::text AS at')
    return (rows[0] as { at: string }).at
  }

  /** What was written to the relations of the schema from a position to the present one. */
  async since(from: string): Promise<Written> {
    const to = await this.position()
    if (to === from) return { rows: 0, pages: 0 }
    const { rows } = await this.#client.query(WRITTEN, [from, to, this.#schema])
    const [written] = rows as { rows: string; pages: string }[]
    return { rows: Number(written?.rows), pages: Number(written?.pages) }
  }
}

/**
 * Hint bits and pruning are left out: they are the server's housekeeping, and come when it likes.
 * Rows that are only locked are no rows that were written.
 */
const WRITTEN = `
WITH blocks AS (
  SELECT b.* FROM pg_get_wal_block_info($1::pg_lsn, $2::pg_lsn) b
  JOIN pg_class c ON c.relfilenode = b.relfilenode
  JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = $3 AND b.relforknumber = 0
    AND b.resource_manager IN ('Heap', 'Btree', 'BRIN', 'Gin', 'Hash')
    AND b.record_type NOT LIKE 'LOCK%'
    AND NOT (b.resource_manager = 'Btree' AND b.record_type IN ('DELETE', 'DEDUP', 'VACUUM'))
)
SELECT count(DISTINCT start_lsn) FILTER (WHERE resource_manager = 'Heap') AS rows,
  count(DISTINCT (relfilenode, relblocknumber)) AS pages
FROM blocks`
