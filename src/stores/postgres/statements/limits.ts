/** Limits, the records of their changes, and what runs and waits under each. */
import { LANES } from '../../../core/job/lanes.ts'
import { orderAt } from '../../columns.ts'
import type { GateFilter, GateHolder, LimitInfo, LimitRecord } from '../../contract/limits.ts'
import type { GateRow } from '../../gate-rows.ts'
import {
  LIMIT_COLUMNS,
  LIMIT_RECORD_COLUMNS,
  type LimitRecordRow,
  type LimitRow,
  limitRecordValues,
  limitValues,
} from '../../limit-records.ts'
import type { BlockedPlace } from '../../verbs/limit-tables.ts'
import type { BlockedGate } from '../../verbs/limit-totals.ts'
import { statement } from '../connect.ts'
import { isUuid } from '../context.ts'
import type { At } from './at.ts'
import { readGates } from './gates.ts'

const key = (s: string) => `hashtextextended('${s.replaceAll("'", "''")}.limits', 0)`
/** Claims that read limits share this lock, so a change of a limit waits for them. */
export const SHARE_LIMITS = statement((s) => `SELECT pg_advisory_xact_lock_shared(${key(s)})`)
const LOCK_LIMITS = statement((s) => `SELECT pg_advisory_xact_lock(${key(s)})`)

const marks = (columns: readonly string[]) => columns.map((_, i) => `$${i + 1}`).join(', ')

const SELECT_LIMIT = statement((s) => `SELECT * FROM ${s}.limits WHERE name = $1`)
const SELECT_LIMITS = statement(
  (s) => `SELECT * FROM ${s}.limits WHERE name > $1 ORDER BY name LIMIT $2`,
)
const UPSERT_LIMIT = statement(
  (s) => `
  INSERT INTO ${s}.limits (${LIMIT_COLUMNS.join(', ')}) VALUES (${marks(LIMIT_COLUMNS)})
  ON CONFLICT (name) DO UPDATE SET
    ${LIMIT_COLUMNS.slice(1)
      .map((name) => `${name} = excluded.${name}`)
      .join(', ')}`,
)
const INSERT_RECORD = statement(
  (s) => `
  INSERT INTO ${s}.limit_records (${LIMIT_RECORD_COLUMNS.join(', ')})
  VALUES (${marks(LIMIT_RECORD_COLUMNS)}) RETURNING number`,
)
const SELECT_RECORDS = statement(
  (s) => `
  SELECT * FROM ${s}.limit_records WHERE number < $1 ORDER BY number DESC LIMIT $2`,
)
const SELECT_OF_LIMIT = statement(
  (s) => `
  SELECT * FROM ${s}.limit_records WHERE number < $1 AND name = $3
  ORDER BY number DESC LIMIT $2`,
)

const SELECT_GATED = statement((s) => `SELECT gated FROM ${s}.queues WHERE name = $1`)
const GATE_QUEUE = statement(
  (s) => `
  INSERT INTO ${s}.queues (name, gated) VALUES ($1, 1)
  ON CONFLICT (name) DO UPDATE SET gated = 1`,
)
/**
 * The fast path of claims does not share the lock of limits. This waits for every writer of jobs
 * and keeps new ones waiting for the rest of the transaction: a claim that waits then reads that
 * the queue is gated. Reads go on.
 */
const LOCK_JOBS = statement((s) => `LOCK TABLE ${s}.jobs IN EXCLUSIVE MODE`)
const COUNT_HELD = statement(
  (s) => `
  WITH counted AS (
    UPDATE ${s}.jobs SET slots = concat_ws(' ', $1::text, slots)
    WHERE lane = ${LANES.held} AND queue = $2 RETURNING 1
  ) SELECT count(*)::int AS jobs FROM counted`,
)

/** The name of a limit is the beginning of the names of its gates; `0` comes after `/`. */
const ofLimit = (name: string) =>
  `(key = ${name} OR (key > ${name} || '/' AND key < ${name} || '0'))`
const LOOK_AT = statement(
  (s) => `
  UPDATE ${s}.gates SET open_at = $1 WHERE key = ANY (ARRAY (
    SELECT key FROM ${s}.gates WHERE waiting = 1 AND ${ofLimit('$2::text')}
    ORDER BY key FOR UPDATE))`,
)

const SELECT_GATE = statement((s) => `SELECT * FROM ${s}.gates WHERE key = $1`)
const SELECT_GATES = statement(
  (s) => `
  SELECT * FROM ${s}.gates
  WHERE key > $1 AND ($2::text IS NULL OR ${ofLimit('$2::text')})
    AND ($3::int = 0 OR waiting = 1)
  ORDER BY key LIMIT $4`,
)
const COUNT_BLOCKED = statement(
  (s) => `
  SELECT count(*)::int AS jobs, min(run_at) AS since FROM (
    SELECT run_at FROM ${s}.jobs WHERE lane = ${LANES.blocked} AND blocked_on = $1 LIMIT $2
  ) AS blocked`,
)
const SELECT_USED = statement(
  (s) => `
  SELECT key AS gate, used FROM ${s}.gates WHERE used > 0 LIMIT $1`,
)
const SELECT_BLOCKED_BY = statement(
  (s) => `
  SELECT blocked_on AS gate, count(*)::int AS jobs, min(run_at) AS since FROM (
    SELECT blocked_on, run_at FROM ${s}.jobs
    WHERE lane = ${LANES.blocked} AND blocked_on IS NOT NULL LIMIT $1
  ) AS blocked GROUP BY blocked_on`,
)
const SELECT_HOLDERS = statement(
  (s) => `
  SELECT id, type, worker, started_at AS "startedAt", lease_until AS "leaseUntil"
  FROM ${s}.jobs
  WHERE lane = ${LANES.held} AND slots IS NOT NULL
    AND strpos(' ' || slots || ' ', ' ' || $1::text || ' ') > 0
  ORDER BY started_at, id LIMIT $2`,
)
const SELECT_PLACE = statement(
  (s) => `
  SELECT id AS ref, blocked_on AS gate, priority, ${orderAt()} AS "orderAt" FROM ${s}.jobs
  WHERE id = $1 AND lane = ${LANES.blocked}`,
)
const COUNT_AHEAD = statement(
  (s) => `
  SELECT count(*)::int AS jobs FROM (
    SELECT 1 FROM ${s}.jobs WHERE lane = ${LANES.blocked} AND blocked_on = $1
      AND (priority, ${orderAt()}, id) < ($2::int, $3::bigint, $4::uuid) LIMIT $5) AS ahead`,
)
const SELECT_SLOTS = statement(
  (s) => `SELECT slots FROM ${s}.jobs WHERE lane = ${LANES.held} AND slots IS NOT NULL`,
)

const SELECT_BLOCKING = statement(
  (s) => `
  SELECT DISTINCT blocked_on AS gate FROM ${s}.jobs
  WHERE lane = ${LANES.blocked} AND blocked_on IS NOT NULL`,
)
const SELECT_GATED_QUEUES = statement((s) => `SELECT name FROM ${s}.queues WHERE gated = 1`)

export const LIMITS = {
  async lockLimits({ session }: At) {
    await session.query(LOCK_LIMITS)
  },
  async limitRow({ session }: At, name: string) {
    const [row] = await session.query<LimitRow>(SELECT_LIMIT, [name])
    return row
  },
  async writeLimit({ session }: At, limit: LimitInfo) {
    await session.query(UPSERT_LIMIT, limitValues(limit))
  },
  async recordLimit({ session }: At, record: Omit<LimitRecord, 'number'>) {
    const values = limitRecordValues(record)
    const [row] = await session.query<{ number: number }>(INSERT_RECORD, values)
    return row?.number ?? 0
  },
  limitRows: ({ session }: At, after: string, limit: number) =>
    session.query<LimitRow>(SELECT_LIMITS, [after, limit]),
  limitRecords({ session }: At, name: string | undefined, before: number, limit: number) {
    return name === undefined
      ? session.query<LimitRecordRow>(SELECT_RECORDS, [before, limit])
      : session.query<LimitRecordRow>(SELECT_OF_LIMIT, [before, limit, name])
  },
  async gateQueue({ session }: At, queue: string, gate: string) {
    const [known] = await session.query<{ gated: number }>(SELECT_GATED, [queue])
    if (known?.gated === 1) return undefined
    await session.query(LOCK_JOBS)
    await session.query(GATE_QUEUE, [queue])
    const [row] = await session.query<{ jobs: number }>(COUNT_HELD, [gate, queue])
    return row?.jobs ?? 0
  },
  async lookAtGates({ session, now }: At, limit: string) {
    await session.query(LOOK_AT, [now, limit])
  },
  async gateRows({ session }: At, { limit, waiting }: GateFilter, after: string, count: number) {
    const values = [after, limit ?? null, waiting ? 1 : 0, count]
    return readGates(session, await session.query<GateRow>(SELECT_GATES, values))
  },
  async readGate({ session }: At, name: string) {
    return readGates(session, await session.query<GateRow>(SELECT_GATE, [name]), [name])
  },
  async countBlocked({ session }: At, gate: string, bound: number) {
    type Row = { jobs: number; since: number | null }
    const [row] = await session.query<Row>(COUNT_BLOCKED, [gate, bound])
    const { jobs = 0, since = null } = row ?? {}
    return { jobs, ...(since !== null && { since }) }
  },
  usedGates: ({ session }: At, bound: number) =>
    session.query<{ gate: string; used: number }>(SELECT_USED, [bound]),
  blockedGates: ({ session }: At, bound: number) =>
    session.query<BlockedGate>(SELECT_BLOCKED_BY, [bound]),
  gateHolders: ({ session }: At, gate: string, limit: number) =>
    session.query<GateHolder>(SELECT_HOLDERS, [gate, limit]),
  async blockedPlace({ session }: At, jobId: string) {
    if (!isUuid(jobId)) return undefined
    const [row] = await session.query<BlockedPlace>(SELECT_PLACE, [jobId])
    return row
  },
  async countAhead({ session }: At, { gate, priority, orderAt, ref }: BlockedPlace, bound: number) {
    const values = [gate, priority, orderAt, ref, bound]
    const [row] = await session.query<{ jobs: number }>(COUNT_AHEAD, values)
    return row?.jobs ?? 0
  },
  async heldSlots({ session }: At) {
    const rows = await session.query<{ slots: string }>(SELECT_SLOTS)
    return rows.map(({ slots }) => slots)
  },
  async blockingGates({ session }: At) {
    const rows = await session.query<{ gate: string }>(SELECT_BLOCKING)
    return rows.map(({ gate }) => gate)
  },
  async gatedQueues({ session }: At) {
    const rows = await session.query<{ name: string }>(SELECT_GATED_QUEUES)
    return rows.map(({ name }) => name)
  },
}
