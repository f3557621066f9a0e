/**
 * The tables of runs, behind the contract of `../runs.ts`. Each write is one statement. Where its
 * answer was lost it is asked again, and what was done the first time is known by the fence, which
 * nobody else has, or by the last line.
 */

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
import { type OwnSession, type Session, type Statement, statement } from './connect.ts'
import { arrayOf } from './rows-at-once.ts'

const GRIPPED = 'id = $1 AND fence = $2 AND lease_until > $3'

const INSERT_RUN = statement(
  (s) => `
  INSERT INTO ${s}.runs (id, last_seq, last_hash, snapshot, fence, holder, lease_until)
  VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING RETURNING id`,
)
const INSERT_EVENTS = statement(
  (s) => `
  INSERT INTO ${s}.run_events (run, seq, line)
  SELECT $1, place, line FROM unnest($2::text[]) WITH ORDINALITY AS event (line, place)`,
)
const INSERT_CONTENT = statement(
  (s) => `
  INSERT INTO ${s}.run_contents (run, path, content) VALUES ($1, $2, decode($3, 'base64'))`,
)
/** A lease that ends later is damaged, and counts as ended. */
const AHEAD_MAX_MS = LEASE_MAX_MS + CLOCK_SLACK_MS
const HOLD = statement(
  (s) => `
  UPDATE ${s}.runs SET fence = $2, holder = $4, lease_until = $5
  WHERE id = $1 AND (fence IS NULL OR fence = $2
    OR lease_until NOT BETWEEN $3::bigint + 1 AND $3::bigint + ${AHEAD_MAX_MS})
  RETURNING id`,
)
const RENEW = statement(
  (s) => `UPDATE ${s}.runs SET lease_until = $4 WHERE ${GRIPPED} RETURNING id`,
)
const RELEASE = statement(
  (s) => `
  UPDATE ${s}.runs SET fence = NULL, holder = NULL, lease_until = NULL
  WHERE ${GRIPPED} RETURNING id`,
)
const APPEND = statement(
  (s) => `
  WITH gripped AS (
    UPDATE ${s}.runs SET last_seq = $5, last_hash = $6, snapshot = coalesce($7, snapshot)
    WHERE ${GRIPPED} AND last_seq = $4 RETURNING id
  )
  INSERT INTO ${s}.run_events (run, seq, line)
  SELECT gripped.id, $4 + place, line
  FROM gripped, unnest($8::text[]) WITH ORDINALITY AS event (line, place)
  RETURNING seq`,
)
/**
 * No two lines are alike, because each holds an id of its own. The lock is a write: with
 * synchronous replication, what is found has reached a standby when its transaction has committed.
 */
const FIND_LINE = statement(
  (s) => `
  SELECT seq FROM ${s}.run_events WHERE run = $1 AND seq = $2 AND line = $3 FOR KEY SHARE`,
)
const SNAPSHOT = statement(
  (s) => `UPDATE ${s}.runs SET snapshot = $4 WHERE ${GRIPPED} RETURNING id`,
)
const FAILURE = statement((s) => `UPDATE ${s}.runs SET failure = $4 WHERE ${GRIPPED} RETURNING id`)
const PUT_CONTENT = statement(
  (s) => `
  INSERT INTO ${s}.run_contents (run, path, content)
  SELECT id, $4, decode($5, 'base64') FROM ${s}.runs WHERE ${GRIPPED}
  ON CONFLICT (run, path) DO UPDATE SET content = excluded.content
  RETURNING run`,
)
const CANCEL = statement((s) => `UPDATE ${s}.runs SET cancel = $2 WHERE id = $1 RETURNING id`)
const SELECT = statement((s) => `SELECT * FROM ${s}.runs WHERE id = $1`)
const LOCK_RUN = statement((s) => `SELECT * FROM ${s}.runs WHERE id = $1 FOR KEY SHARE`)
const SELECT_CONTENT = statement(
  (s) => `
  SELECT encode(content, 'base64') AS content FROM ${s}.run_contents WHERE run = $1 AND path = $2`,
)
const SELECT_LINES = statement(
  (s) => `SELECT line FROM ${s}.run_events WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3`,
)
const SELECT_IDS = statement((s) => `SELECT id FROM ${s}.runs WHERE id > $1 ORDER BY id LIMIT $2`)

/** How the store reads and writes. */
export interface Access {
  read<T>(work: (session: Session) => Promise<T>): Promise<T>
  /** One statement; `redo` tells that an earlier try may have been done. */
  write<T>(
    verb: VerbName,
    work: (session: OwnSession, now: number, redo: boolean) => Promise<T>,
  ): Promise<T>
  /** Several statements in one transaction. */
  change<T>(
    verb: VerbName,
    work: (session: OwnSession, now: number, redo: boolean) => Promise<T>,
  ): Promise<T>
}

/** The tables in PostgreSQL. */
export class PostgresRuns implements RunTables {
  readonly #access: Access
  readonly #now: () => number

  constructor(access: Access, now: () => number) {
    this.#access = access
    this.#now = now
  }

  add({ runId, lines, end, snapshot, grip, contents }: NewRun): Promise<boolean> {
    return this.#access.change('runs.add', async (session, now, redo) => {
      const held = grip ? [grip.fence, grip.holder, now + grip.leaseMs] : [null, null, null]
      const values = [runId, end.seq, end.hash, snapshot, ...held]
      const [added] = await session.query(INSERT_RUN, values)
      if (added === undefined) return redo && (await isOwn(session, runId, end.hash))
      await session.query(INSERT_EVENTS, [runId, arrayOf(lines)])
      for (const { path, bytes } of contents) {
        await session.query(INSERT_CONTENT, [runId, path, base64Of(bytes)])
      }
      return true
    })
  }

  hold({ runId, fence }: Grip, { holder, leaseMs }: HoldOptions): Promise<Hold> {
    return this.#access.write('runs.hold', async (session, now): Promise<Hold> => {
      const values = [runId, fence, now, holder, now + leaseMs]
      if ((await session.query(HOLD, values)).length > 0) return { kind: 'held' }
      const [row] = await session.query<RunTableRow>(SELECT, [runId])
      if (row === undefined) return { kind: 'missing' }
      return { kind: 'taken', holder: row.holder ?? '' }
    })
  }

  renew(grip: Grip, leaseMs: number): Promise<boolean> {
    return this.#update('runs.renew', RENEW, grip, (now) => [now + leaseMs])
  }

  async release(grip: Grip): Promise<void> {
    await this.#update('runs.release', RELEASE, grip, () => [])
  }

  append({ runId, fence }: Grip, addition: Addition): Promise<boolean> {
    const { after, lines, end, snapshot = null } = addition
    return this.#access.write('runs.append', async (session, now, redo) => {
      if (redo) {
        const last = lines[lines.length - 1] ?? ''
        const [done] = await session.query(FIND_LINE, [runId, end.seq, last])
        if (done !== undefined) return true
      }
      const values = [runId, fence, now, after, end.seq, end.hash, snapshot, arrayOf(lines)]
      return (await session.query(APPEND, values)).length > 0
    })
  }

  putSnapshot(grip: Grip, snapshot: string): Promise<boolean> {
    return this.#update('runs.snapshot', SNAPSHOT, grip, () => [snapshot])
  }

  putContent(grip: Grip, { path, bytes }: Content): Promise<boolean> {
    return this.#update('runs.content', PUT_CONTENT, grip, () => [path, base64Of(bytes)])
  }

  content(runId: string, path: string): Promise<Uint8Array | undefined> {
    return this.#access.read(async (session) => {
      const [row] = await session.query<{ content: string }>(SELECT_CONTENT, [runId, path])
      return row && Buffer.from(row.content, 'base64')
    })
  }

  get(runId: string): Promise<RunRow | undefined> {
    return this.#access.read(async (session) => {
      const [row] = await session.query<RunTableRow>(SELECT, [runId])
      return row && toRunRow(row, this.#now())
    })
  }

  lines(runId: string, after: number, limit: number): Promise<string[]> {
    return this.#access.read(async (session) => {
      const rows = await session.query<{ line: string }>(SELECT_LINES, [runId, after, limit])
      return rows.map(({ line }) => line)
    })
  }

  ids(after: string, limit: number): Promise<string[]> {
    return this.#access.read(async (session) => {
      const rows = await session.query<{ id: string }>(SELECT_IDS, [after, limit])
      return rows.map(({ id }) => id)
    })
  }

  askCancel(runId: string, request: string): Promise<boolean> {
    return this.#access.write(
      'runs.cancel',
      async (session) => (await session.query(CANCEL, [runId, request])).length > 0,
    )
  }

  putFailure(grip: Grip, failure: string): Promise<boolean> {
    return this.#update('runs.failure', FAILURE, grip, () => [failure])
  }

  #update(
    verb: VerbName,
    made: Statement,
    { runId, fence }: Grip,
    valuesAt: (now: number) => (string | number)[],
  ): Promise<boolean> {
    return this.#access.write(verb, async (session, now) => {
      const rows = await session.query(made, [runId, fence, now, ...valuesAt(now)])
      return rows.length > 0
    })
  }
}

/**
 * Whether a run that is there was added by an earlier try whose answer was lost. The hash of its
 * last event is that of no other run, because every event holds an id of its own.
 */
async function isOwn(session: OwnSession, runId: string, lastHash: string): Promise<boolean> {
  const [row] = await session.query<RunTableRow>(LOCK_RUN, [runId])
  return row?.last_hash === lastHash
}

function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}
