/** The tables of runs, behind the contract of `../runs.ts`. */

import { CLOCK_SLACK_MS, LEASE_MAX_MS } from '../../core/job/fence.ts'
import { type RunTableRow, toRunRow } from '../run-rows.ts'
import type {
  Addition,
  Content,
  Grip,
  Hold,
  HoldOptions,
  NewRun,
  RunRow,
  RunTables,
} from '../runs.ts'
import type { VerbName } from '../verb-table.ts'
import type { Connection } from './connect.ts'
import type { Work } from './writer.ts'

const INSERT_RUN = `
  INSERT INTO pawl_runs (id, last_seq, last_hash, snapshot, fence, holder, lease_until)
  VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`
const INSERT_EVENT = 'INSERT INTO pawl_run_events (run, seq, line) VALUES (?, ?, ?)'
const INSERT_CONTENT = `
  INSERT INTO pawl_run_contents (run, path, content) VALUES (?, ?, ?)
  ON CONFLICT (run, path) DO UPDATE SET content = excluded.content`
const HOLD = `
  UPDATE pawl_runs SET fence = ?1, holder = ?2, lease_until = ?3
  WHERE id = ?4
    AND (fence IS NULL OR lease_until NOT BETWEEN ?5 + 1 AND ?5 + ${LEASE_MAX_MS + CLOCK_SLACK_MS})`
/** The condition of every write by a holder; its values come last. */
const GRIPPED = 'id = ? AND fence = ? AND lease_until > ?'
const APPEND = `
  UPDATE pawl_runs SET last_seq = ?, last_hash = ?, snapshot = coalesce(?, snapshot)
  WHERE last_seq = ? AND ${GRIPPED}`

/** How the store reads and writes. */
interface Access {
  read<T>(work: (connection: Connection) => T): Promise<T>
  write<T>(verb: VerbName, work: Work<T>): Promise<T>
}

/** The tables in a SQLite file. */
export class SqliteRuns implements RunTables {
  readonly #access: Access
  readonly #now: () => number

  constructor(access: Access, now: () => number) {
    this.#access = access
    this.#now = now
  }

  add({ runId, lines, end, snapshot, grip, contents }: NewRun): Promise<boolean> {
    return this.#access.write('runs.add', (db, now) => {
      const held = grip ? [grip.fence, grip.holder, now + grip.leaseMs] : [null, null, null]
      if (db.run(INSERT_RUN, runId, end.seq, end.hash, snapshot, ...held) === 0) return false
      for (const [i, line] of lines.entries()) db.run(INSERT_EVENT, runId, i + 1, line)
      for (const { path, bytes } of contents) db.run(INSERT_CONTENT, runId, path, bytes)
      return true
    })
  }

  hold({ runId, fence }: Grip, { holder, leaseMs }: HoldOptions): Promise<Hold> {
    return this.#access.write('runs.hold', (db, now): Hold => {
      if (db.run(HOLD, fence, holder, now + leaseMs, runId, now) > 0) return { kind: 'held' }
      const row = db.get<{ holder: string }>('SELECT holder FROM pawl_runs WHERE id = ?', runId)
      return row === undefined ? { kind: 'missing' } : { kind: 'taken', holder: row.holder }
    })
  }

  renew(grip: Grip, leaseMs: number): Promise<boolean> {
    const sql = `UPDATE pawl_runs SET lease_until = ? WHERE ${GRIPPED}`
    return this.#update('runs.renew', sql, grip, (now) => [now + leaseMs])
  }

  async release(grip: Grip): Promise<void> {
    const sql = `
      UPDATE pawl_runs SET fence = NULL, holder = NULL, lease_until = NULL WHERE ${GRIPPED}`
    await this.#update('runs.release', sql, grip, () => [])
  }

  append({ runId, fence }: Grip, addition: Addition): Promise<boolean> {
    const { after, lines, end, snapshot = null } = addition
    return this.#access.write('runs.append', (db, now) => {
      const changed = db.run(APPEND, end.seq, end.hash, snapshot, after, runId, fence, now)
      if (changed === 0) return false
      for (const [i, line] of lines.entries()) db.run(INSERT_EVENT, runId, after + 1 + i, line)
      return true
    })
  }

  putSnapshot(grip: Grip, snapshot: string): Promise<boolean> {
    const sql = `UPDATE pawl_runs SET snapshot = ? WHERE ${GRIPPED}`
    return this.#update('runs.snapshot', sql, grip, () => [snapshot])
  }

  putContent({ runId, fence }: Grip, { path, bytes }: Content): Promise<boolean> {
    const sql = `SELECT 1 FROM pawl_runs WHERE ${GRIPPED}`
    return this.#access.write('runs.content', (db, now) => {
      if (db.get(sql, runId, fence, now) === undefined) return false
      return db.run(INSERT_CONTENT, runId, path, bytes) > 0
    })
  }

  content(runId: string, path: string): Promise<Uint8Array | undefined> {
    const sql = 'SELECT content FROM pawl_run_contents WHERE run = ? AND path = ?'
    return this.#access.read((db) => db.get<{ content: Uint8Array }>(sql, runId, path)?.content)
  }

  get(runId: string): Promise<RunRow | undefined> {
    return this.#access.read((db) => {
      const row = db.get<RunTableRow>('SELECT * FROM pawl_runs WHERE id = ?', runId)
      return row && toRunRow(row, this.#now())
    })
  }

  lines(runId: string, after: number, limit: number): Promise<string[]> {
    const sql = `
      SELECT line FROM pawl_run_events WHERE run = ? AND seq > ? ORDER BY seq LIMIT ?`
    return this.#access.read((db) =>
      db.all<{ line: string }>(sql, runId, after, limit).map(({ line }) => line),
    )
  }

  ids(after: string, limit: number): Promise<string[]> {
    const sql = 'SELECT id FROM pawl_runs WHERE id > ? ORDER BY id LIMIT ?'
    return this.#access.read((db) => db.all<{ id: string }>(sql, after, limit).map(({ id }) => id))
  }

  askCancel(runId: string, request: string): Promise<boolean> {
    const sql = 'UPDATE pawl_runs SET cancel = ? WHERE id = ?'
    return this.#access.write('runs.cancel', (db) => db.run(sql, request, runId) > 0)
  }

  putFailure(grip: Grip, failure: string): Promise<boolean> {
    const sql = `UPDATE pawl_runs SET failure = ? WHERE ${GRIPPED}`
    return this.#update('runs.failure', sql, grip, () => [failure])
  }

  #update(
    verb: VerbName,
    sql: string,
    { runId, fence }: Grip,
    valuesAt: (now: number) => (string | number)[],
  ): Promise<boolean> {
    return this.#access.write(
      verb,
      (db, now) => db.run(sql, ...valuesAt(now), runId, fence, now) > 0,
    )
  }
}
