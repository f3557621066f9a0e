/** The tables of runs on PostgreSQL. */
import { CLOCK_SLACK_MS, LEASE_MAX_MS } from '../../../core/job/fence.ts'
import type { Addition, Content, RunLease } from '../../contract/runs.ts'
import type { HeldColumn, NewRunRow, RunTableRow } from '../../verbs/run-tables.ts'
import { statement } from '../connect.ts'
import { arrayOf } from '../rows-at-once.ts'
import type { At } from './at.ts'

const INSERT_RUN = statement(
  (s) => `
  INSERT INTO ${s}.runs (id, last_seq, last_hash, snapshot, fence, holder, lease_until)
  VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING RETURNING id`,
)

const INSERT_LINES = statement(
  (s) => `
  INSERT INTO ${s}.run_events (run, seq, line)
  SELECT $1, seq, line FROM unnest($2::text[]) WITH ORDINALITY AS event (line, seq)`,
)

const INSERT_CONTENT = statement(
  (s) => `
  INSERT INTO ${s}.run_contents (run, path, content) VALUES ($1, $2, decode($3, 'base64'))`,
)

/**
 * The lock is a write: with synchronous replication, the row that it finds has reached a standby
 * when the transaction of the lock has committed.
 */
const LOCK_HASH = statement((s) => `SELECT last_hash FROM ${s}.runs WHERE id = $1 FOR KEY SHARE`)
const LOCK_LINE = statement(
  (s) => `
  SELECT seq FROM ${s}.run_events WHERE run = $1 AND seq = $2 AND line = $3 FOR KEY SHARE`,
)

/** A lease that ends later than any lease can is damaged, and does not keep others out. */
const AHEAD_MAX_MS = LEASE_MAX_MS + CLOCK_SLACK_MS
/** `fence = $2`: an earlier try, whose reply was lost, may have written this lease. */
const LEASE = statement(
  (s) => `
  UPDATE ${s}.runs SET fence = $2, holder = $4, lease_until = $5
  WHERE id = $1 AND (fence IS NULL OR fence = $2
    OR lease_until NOT BETWEEN $3::bigint + 1 AND $3::bigint + ${AHEAD_MAX_MS})
  RETURNING id`,
)

/** The condition of every write under a lease; its values come first. */
const IS_HELD = 'id = $1 AND fence = $2 AND lease_until > $3'

const setColumn = (column: HeldColumn) =>
  statement((s) => `UPDATE ${s}.runs SET ${column} = $4 WHERE ${IS_HELD} RETURNING id`)
const SET_COLUMN = {
  lease_until: setColumn('lease_until'),
  snapshot: setColumn('snapshot'),
  failure: setColumn('failure'),
}

const RELEASE = statement(
  (s) => `
  UPDATE ${s}.runs SET fence = NULL, holder = NULL, lease_until = NULL WHERE ${IS_HELD}`,
)

/** One statement, so that an append costs one round trip and no transaction block. */
const APPEND = statement(
  (s) => `
  WITH held AS (
    UPDATE ${s}.runs SET last_seq = $5, last_hash = $6, snapshot = coalesce($7, snapshot)
    WHERE ${IS_HELD} AND last_seq = $4 RETURNING id
  )
  INSERT INTO ${s}.run_events (run, seq, line)
  SELECT held.id, $4 + nth, line
  FROM held, unnest($8::text[]) WITH ORDINALITY AS event (line, nth)
  RETURNING seq`,
)

const PUT_CONTENT = statement(
  (s) => `
  INSERT INTO ${s}.run_contents (run, path, content)
  SELECT id, $4, decode($5, 'base64') FROM ${s}.runs WHERE ${IS_HELD}
  ON CONFLICT (run, path) DO UPDATE SET content = excluded.content
  RETURNING run`,
)

const CANCEL = statement((s) => `UPDATE ${s}.runs SET cancel = $2 WHERE id = $1 RETURNING id`)

const SELECT_RUN = statement((s) => `SELECT * FROM ${s}.runs WHERE id = $1`)

const SELECT_CONTENT = statement(
  (s) => `
  SELECT encode(content, 'base64') AS content FROM ${s}.run_contents WHERE run = $1 AND path = $2`,
)

const SELECT_LINES = statement(
  (s) => `SELECT line FROM ${s}.run_events WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3`,
)

const SELECT_IDS = statement((s) => `SELECT id FROM ${s}.runs WHERE id > $1 ORDER BY id LIMIT $2`)

export const RUNS = {
  async insertRun({ session }: At, row: NewRunRow) {
    return (await session.query(INSERT_RUN, row)).length > 0
  },
  async insertRunLines({ session }: At, runId: string, lines: readonly string[]) {
    await session.query(INSERT_LINES, [runId, arrayOf(lines)])
  },
  async insertRunContent({ session }: At, runId: string, { path, bytes }: Content) {
    await session.query(INSERT_CONTENT, [runId, path, base64Of(bytes)])
  },
  async wasRunAdded({ session }: At, runId: string, lastHash: string) {
    const [row] = await session.query<{ last_hash: string }>(LOCK_HASH, [runId])
    return row?.last_hash === lastHash
  },
  async wasLineAppended({ session }: At, runId: string, seq: number, line: string) {
    return (await session.query(LOCK_LINE, [runId, seq, line])).length > 0
  },
  async leaseRun({ session, now }: At, lease: RunLease, holder: string, until: number) {
    const { runId, fence } = lease
    return (await session.query(LEASE, [runId, fence, now, holder, until])).length > 0
  },
  async setHeld({ session, now }: At, lease: RunLease, column: HeldColumn, value: string | number) {
    const values = [lease.runId, lease.fence, now, value]
    return (await session.query(SET_COLUMN[column], values)).length > 0
  },
  async releaseRun({ session, now }: At, { runId, fence }: RunLease) {
    await session.query(RELEASE, [runId, fence, now])
  },
  async appendRunLines({ session, now }: At, { runId, fence }: RunLease, addition: Addition) {
    const { after, lines, end, snapshot = null } = addition
    const values = [runId, fence, now, after, end.seq, end.hash, snapshot, arrayOf(lines)]
    return (await session.query(APPEND, values)).length > 0
  },
  async putRunContent({ session, now }: At, lease: RunLease, { path, bytes }: Content) {
    const values = [lease.runId, lease.fence, now, path, base64Of(bytes)]
    return (await session.query(PUT_CONTENT, values)).length > 0
  },
  async setRunCancel({ session }: At, runId: string, request: string) {
    return (await session.query(CANCEL, [runId, request])).length > 0
  },
  async runRow({ session }: At, runId: string) {
    const [row] = await session.query<RunTableRow>(SELECT_RUN, [runId])
    return row
  },
  async runContent({ session }: At, runId: string, path: string) {
    const [row] = await session.query<{ content: string }>(SELECT_CONTENT, [runId, path])
    return row && Buffer.from(row.content, 'base64')
  },
  async runLines({ session }: At, runId: string, after: number, limit: number) {
    const rows = await session.query<{ line: string }>(SELECT_LINES, [runId, after, limit])
    return rows.map(({ line }) => line)
  },
  async runIds({ session }: At, after: string, limit: number) {
    const rows = await session.query<{ id: string }>(SELECT_IDS, [after, limit])
    return rows.map(({ id }) => id)
  },
}

/** The driver sends text; `decode` makes bytes of it. */
function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}
