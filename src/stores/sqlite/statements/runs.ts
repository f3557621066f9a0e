/** The tables of runs on SQLite. */
import { CLOCK_SLACK_MS, LEASE_MAX_MS } from '../../../core/job/fence.ts'
import type { Addition, Content, RunLease } from '../../contract/runs.ts'
import type { HeldColumn, NewRunRow, RunTableRow } from '../../verbs/run-tables.ts'
import type { Connection } from '../connect.ts'
import type { At } from './at.ts'

const INSERT_RUN = `
  INSERT INTO pawl_runs (id, last_seq, last_hash, snapshot, fence, holder, lease_until)
  VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`

const INSERT_LINE = 'INSERT INTO pawl_run_events (run, seq, line) VALUES (?, ?, ?)'

const INSERT_CONTENT = 'INSERT INTO pawl_run_contents (run, path, content) VALUES (?, ?, ?)'

/** A lease that ends later than any lease can is damaged, and does not keep others out. */
const LEASE = `
  UPDATE pawl_runs SET fence = ?1, holder = ?2, lease_until = ?3
  WHERE id = ?4
    AND (fence IS NULL OR lease_until NOT BETWEEN ?5 + 1 AND ?5 + ${LEASE_MAX_MS + CLOCK_SLACK_MS})`

/** The condition of every write under a lease; its values come last. */
const IS_HELD = 'id = ? AND fence = ? AND lease_until > ?'

/** PostgreSQL appends in one statement; here the write lock covers both statements. */
const MOVE_END = `
  UPDATE pawl_runs SET last_seq = ?, last_hash = ?, snapshot = coalesce(?, snapshot)
  WHERE last_seq = ? AND ${IS_HELD}`

const PUT_CONTENT = `
  INSERT INTO pawl_run_contents (run, path, content)
  SELECT id, ?, ? FROM pawl_runs WHERE ${IS_HELD}
  ON CONFLICT (run, path) DO UPDATE SET content = excluded.content`

const RELEASE = `
  UPDATE pawl_runs SET fence = NULL, holder = NULL, lease_until = NULL WHERE ${IS_HELD}`

const SELECT_LINES = `
  SELECT line FROM pawl_run_events WHERE run = ? AND seq > ? ORDER BY seq LIMIT ?`

export const RUNS = {
  insertRun: ({ connection }: At, row: NewRunRow) => connection.run(INSERT_RUN, ...row) > 0,
  insertRunLines({ connection }: At, runId: string, lines: readonly string[]) {
    insertLines(connection, runId, 0, lines)
  },
  insertRunContent({ connection }: At, runId: string, { path, bytes }: Content) {
    connection.run(INSERT_CONTENT, runId, path, bytes)
  },
  // A process that writes to a file always learns if its transaction committed, so SQLite never
  // repeats a verb.
  wasRunAdded: () => false,
  wasLineAppended: () => false,
  leaseRun: ({ connection, now }: At, { runId, fence }: RunLease, holder: string, until: number) =>
    connection.run(LEASE, fence, holder, until, runId, now) > 0,
  setHeld({ connection, now }: At, lease: RunLease, column: HeldColumn, value: string | number) {
    const sql = `UPDATE pawl_runs SET ${column} = ? WHERE ${IS_HELD}`
    return connection.run(sql, value, lease.runId, lease.fence, now) > 0
  },
  releaseRun({ connection, now }: At, { runId, fence }: RunLease) {
    connection.run(RELEASE, runId, fence, now)
  },
  appendRunLines({ connection, now }: At, { runId, fence }: RunLease, addition: Addition) {
    const { after, lines, end, snapshot = null } = addition
    const changed = connection.run(MOVE_END, end.seq, end.hash, snapshot, after, runId, fence, now)
    if (changed > 0) insertLines(connection, runId, after, lines)
    return changed > 0
  },
  putRunContent: ({ connection, now }: At, lease: RunLease, { path, bytes }: Content) =>
    connection.run(PUT_CONTENT, path, bytes, lease.runId, lease.fence, now) > 0,
  setRunCancel: ({ connection }: At, runId: string, request: string) =>
    connection.run('UPDATE pawl_runs SET cancel = ? WHERE id = ?', request, runId) > 0,
  runRow: ({ connection }: At, runId: string) =>
    connection.get<RunTableRow>('SELECT * FROM pawl_runs WHERE id = ?', runId),
  runContent({ connection }: At, runId: string, path: string) {
    const sql = 'SELECT content FROM pawl_run_contents WHERE run = ? AND path = ?'
    return connection.get<{ content: Uint8Array }>(sql, runId, path)?.content
  },
  runLines: ({ connection }: At, runId: string, after: number, limit: number) =>
    connection.all<{ line: string }>(SELECT_LINES, runId, after, limit).map(({ line }) => line),
  runIds({ connection }: At, after: string, limit: number) {
    const sql = 'SELECT id FROM pawl_runs WHERE id > ? ORDER BY id LIMIT ?'
    return connection.all<{ id: string }>(sql, after, limit).map(({ id }) => id)
  },
}

function insertLines(db: Connection, runId: string, after: number, lines: readonly string[]): void {
  for (const [i, line] of lines.entries()) db.run(INSERT_LINE, runId, after + 1 + i, line)
}
