/**
 * The local telemetry store: one SQLite file with the events of runs, as they were sent. An event
 * that comes twice is kept once, by its id.
 */
import { type Database, loadDriver } from './sqlite/driver.ts'

/** A stored event. */
export interface StoredEvent {
  readonly event_id: string
  readonly run_id: string
  readonly seq?: number
  readonly type: string
  readonly ts: string
  readonly trace_id: string
  readonly data: object
}

/** Which events a list returns; conditions are combined. */
export interface EventQuery {
  readonly run?: string
  readonly trace?: string
  /** Events of the runs to which this commit was linked. */
  readonly commit?: string
  readonly after?: number
  readonly limit: number
}

/** A page of events, in the order in which they came. */
export interface EventPage {
  readonly items: readonly unknown[]
  /** The cursor of the next page; absent at the end. */
  readonly nextCursor: number | undefined
}

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS events (
    pos INTEGER PRIMARY KEY, event_id TEXT NOT NULL UNIQUE, run_id TEXT NOT NULL,
    trace_id TEXT NOT NULL, linked_commit TEXT, event TEXT NOT NULL
  ) STRICT;
  CREATE INDEX IF NOT EXISTS events_run ON events (run_id, pos);
  CREATE INDEX IF NOT EXISTS events_trace ON events (trace_id, pos);
  CREATE INDEX IF NOT EXISTS events_commit ON events (linked_commit)
    WHERE linked_commit IS NOT NULL;
`

const INSERT = `
  INSERT INTO events (event_id, run_id, trace_id, linked_commit, event) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (event_id) DO NOTHING`

const SELECT = `
  SELECT pos, event FROM events
  WHERE pos > ? AND (?2 IS NULL OR run_id = ?2) AND (?3 IS NULL OR trace_id = ?3)
    AND (?4 IS NULL OR run_id IN (SELECT run_id FROM events WHERE linked_commit = ?4))
  ORDER BY pos LIMIT ?5`

/** Events of runs in a SQLite file. */
export class TelemetryEvents {
  readonly #database: Database

  constructor(path: string) {
    const { DatabaseSync } = loadDriver()
    this.#database = new DatabaseSync(path, { timeout: 5000 })
    this.#database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;')
    this.#database.exec(SCHEMA)
  }

  /** Writes events, all or none; returns how many were new. Durable when it returns. */
  add(events: readonly StoredEvent[]): number {
    const insert = this.#database.prepare(INSERT)
    let added = 0
    this.#database.exec('BEGIN IMMEDIATE')
    try {
      for (const event of events) {
        const { event_id, run_id, trace_id, type, data } = event
        const sha = (data as { sha?: unknown }).sha
        const linked = type === 'COMMIT_LINKED' && typeof sha === 'string' ? sha : null
        const text = JSON.stringify(event)
        added += Number(insert.run(event_id, run_id, trace_id, linked, text).changes)
      }
      this.#database.exec('COMMIT')
    } catch (error) {
      this.#database.exec('ROLLBACK')
      throw error
    }
    return added
  }

  /** Returns events in the order in which they came. */
  find({ run, trace, commit, after = 0, limit }: EventQuery): EventPage {
    const values = [after, run ?? null, trace ?? null, commit ?? null, limit + 1]
    const rows = this.#database.prepare(SELECT).all(...values) as { pos: number; event: string }[]
    const page = rows.slice(0, limit)
    const isMore = rows.length > limit
    return {
      items: page.map(({ event }) => JSON.parse(event) as unknown),
      nextCursor: isMore ? Number(page[page.length - 1]?.pos) : undefined,
    }
  }

  close(): void {
    this.#database.close()
  }
}
