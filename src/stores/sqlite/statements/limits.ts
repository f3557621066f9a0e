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
import type { At } from './at.ts'
import { readGates } from './gates.ts'

const marks = (columns: readonly string[]) => columns.map(() => '?').join(', ')

const SELECT_LIMIT = 'SELECT * FROM pawl_limits WHERE name = ?'
const SELECT_LIMITS = 'SELECT * FROM pawl_limits WHERE name > ? ORDER BY name LIMIT ?'
const UPSERT_LIMIT = `
  INSERT OR REPLACE INTO pawl_limits (${LIMIT_COLUMNS.join(', ')})
  VALUES (${marks(LIMIT_COLUMNS)})`
const INSERT_RECORD = `
  INSERT INTO pawl_limit_records (${LIMIT_RECORD_COLUMNS.join(', ')})
  VALUES (${marks(LIMIT_RECORD_COLUMNS)}) RETURNING number`
const SELECT_RECORDS = `
  SELECT * FROM pawl_limit_records WHERE number < ? ORDER BY number DESC LIMIT ?`
const SELECT_OF_LIMIT = `
  SELECT * FROM pawl_limit_records WHERE number < ? AND name = ? ORDER BY number DESC LIMIT ?`

const SELECT_GATED = 'SELECT gated FROM pawl_queues WHERE name = ?'
const GATE_QUEUE = `
  INSERT INTO pawl_queues (name, gated) VALUES (?, 1)
  ON CONFLICT (name) DO UPDATE SET gated = 1`
const COUNT_HELD = `
  UPDATE pawl_jobs SET slots = CASE WHEN slots IS NULL THEN ?1 ELSE ?1 || ' ' || slots END
  WHERE lane = ${LANES.held} AND queue = ?2`

/** The name of a limit is the beginning of the names of its gates; `0` comes after `/`. */
const LOOK_AT = `
  UPDATE pawl_gates SET open_at = ?1
  WHERE waiting = 1 AND (key = ?2 OR (key > ?2 || '/' AND key < ?2 || '0'))`

const SELECT_GATE = 'SELECT * FROM pawl_gates WHERE key = ?'
const SELECT_GATES = `
  SELECT * FROM pawl_gates
  WHERE key > ?1 AND (?2 IS NULL OR key = ?2 OR (key > ?2 || '/' AND key < ?2 || '0'))
    AND (?3 = 0 OR waiting = 1)
  ORDER BY key LIMIT ?4`

const COUNT_BLOCKED = `
  SELECT count(*) AS jobs, min(run_at) AS since FROM (
    SELECT run_at FROM pawl_jobs WHERE lane = ${LANES.blocked} AND blocked_on = ?1 LIMIT ?2)`
const SELECT_USED = `
  SELECT key AS gate, used FROM pawl_gates WHERE used > 0 LIMIT ?`
const SELECT_BLOCKED_BY = `
  SELECT blocked_on AS gate, count(*) AS jobs, min(run_at) AS since FROM (
    SELECT blocked_on, run_at FROM pawl_jobs
    WHERE lane = ${LANES.blocked} AND blocked_on IS NOT NULL LIMIT ?
  ) AS blocked GROUP BY blocked_on`
const SELECT_HOLDERS = `
  SELECT id, type, worker, started_at AS startedAt, lease_until AS leaseUntil FROM pawl_jobs
  WHERE lane = ${LANES.held} AND slots IS NOT NULL
    AND instr(' ' || slots || ' ', ' ' || ?1 || ' ') > 0
  ORDER BY started_at, rid LIMIT ?2`
const SELECT_PLACE = `
  SELECT rid AS ref, blocked_on AS gate, priority, ${orderAt()} AS orderAt FROM pawl_jobs
  WHERE id = ? AND lane = ${LANES.blocked}`
const COUNT_AHEAD = `
  SELECT count(*) AS jobs FROM (
    SELECT 1 FROM pawl_jobs WHERE lane = ${LANES.blocked} AND blocked_on = ?1
      AND (priority, ${orderAt()}, rid) < (?2, ?3, ?4) LIMIT ?5)`
const SELECT_SLOTS = `
  SELECT slots FROM pawl_jobs WHERE lane = ${LANES.held} AND slots IS NOT NULL`

const SELECT_BLOCKING = `
  SELECT DISTINCT blocked_on AS gate FROM pawl_jobs
  WHERE lane = ${LANES.blocked} AND blocked_on IS NOT NULL`
const SELECT_GATED_QUEUES = 'SELECT name FROM pawl_queues WHERE gated = 1'

export const LIMITS = {
  /** The write lock keeps claims from running. */
  lockLimits() {},
  limitRow: ({ connection }: At, name: string) => connection.get<LimitRow>(SELECT_LIMIT, name),
  writeLimit({ connection }: At, limit: LimitInfo) {
    connection.run(UPSERT_LIMIT, ...limitValues(limit))
  },
  recordLimit({ connection }: At, record: Omit<LimitRecord, 'number'>) {
    const values = limitRecordValues(record)
    return connection.get<{ number: number }>(INSERT_RECORD, ...values)?.number ?? 0
  },
  limitRows: ({ connection }: At, after: string, limit: number) =>
    connection.all<LimitRow>(SELECT_LIMITS, after, limit),
  limitRecords({ connection }: At, name: string | undefined, before: number, limit: number) {
    return name === undefined
      ? connection.all<LimitRecordRow>(SELECT_RECORDS, before, limit)
      : connection.all<LimitRecordRow>(SELECT_OF_LIMIT, before, name, limit)
  },
  gateQueue({ connection }: At, queue: string, gate: string) {
    const row = connection.get<{ gated: number }>(SELECT_GATED, queue)
    if (row?.gated === 1) return undefined
    connection.run(GATE_QUEUE, queue)
    return connection.run(COUNT_HELD, gate, queue)
  },
  lookAtGates({ connection, now }: At, limit: string) {
    connection.run(LOOK_AT, now, limit)
  },
  gateRows({ connection }: At, { limit, waiting }: GateFilter, after: string, count: number) {
    const values = [after, limit ?? null, waiting ? 1 : 0, count]
    return readGates(connection, connection.all<GateRow>(SELECT_GATES, ...values))
  },
  readGate: ({ connection }: At, key: string) =>
    readGates(connection, connection.all<GateRow>(SELECT_GATE, key), [key]),
  countBlocked({ connection }: At, gate: string, bound: number) {
    type Row = { jobs: number; since: number | null }
    const { jobs = 0, since = null } = connection.get<Row>(COUNT_BLOCKED, gate, bound) ?? {}
    return { jobs, ...(since !== null && { since }) }
  },
  usedGates: ({ connection }: At, bound: number) =>
    connection.all<{ gate: string; used: number }>(SELECT_USED, bound),
  blockedGates: ({ connection }: At, bound: number) =>
    connection.all<BlockedGate>(SELECT_BLOCKED_BY, bound),
  gateHolders: ({ connection }: At, gate: string, limit: number) =>
    connection.all<GateHolder>(SELECT_HOLDERS, gate, limit),
  blockedPlace: ({ connection }: At, jobId: string) =>
    connection.get<BlockedPlace>(SELECT_PLACE, jobId),
  countAhead({ connection }: At, place: BlockedPlace, bound: number) {
    const { gate, priority, orderAt, ref } = place
    const values = [gate, priority, orderAt, ref, bound]
    return connection.get<{ jobs: number }>(COUNT_AHEAD, ...values)?.jobs ?? 0
  },
  heldSlots: ({ connection }: At) =>
    connection.all<{ slots: string }>(SELECT_SLOTS).map(({ slots }) => slots),
  blockingGates: ({ connection }: At) =>
    connection.all<{ gate: string }>(SELECT_BLOCKING).map(({ gate }) => gate),
  gatedQueues: ({ connection }: At) =>
    connection.all<{ name: string }>(SELECT_GATED_QUEUES).map(({ name }) => name),
}
