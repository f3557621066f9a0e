/** Settings of queues, and the records of their changes. */
import type { QueueRow } from '../../queue-info.ts'
import {
  QUEUE_RECORD_COLUMNS,
  type QueueRecord,
  type QueueRecordRow,
  type QueueSettings,
  valuesOf,
} from '../../queue-records.ts'
import { statement } from '../connect.ts'
import type { At } from './at.ts'

const LOCK_QUEUE = statement((s) => `SELECT * FROM ${s}.queues WHERE name = $1 FOR UPDATE`)

/** PostgreSQL can only lock a row that exists; SQLite has the write lock. */
const INSERT_QUEUE = statement(
  (s) => `INSERT INTO ${s}.queues (name) VALUES ($1) ON CONFLICT (name) DO NOTHING`,
)

const UPDATE_QUEUE = statement(
  (s) => `
  UPDATE ${s}.queues SET paused_at = $2, paused_by = $3, max_depth = $4, max_wait_ms = $5
  WHERE name = $1`,
)

const INSERT_RECORD = statement(
  (s) => `
  INSERT INTO ${s}.queue_records (${QUEUE_RECORD_COLUMNS})
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING number`,
)

const SELECT_ALL = statement(
  (s) => `
  SELECT * FROM ${s}.queue_records WHERE number < $1 ORDER BY number DESC LIMIT $2`,
)
const SELECT_OF_QUEUE = statement(
  (s) => `
  SELECT * FROM ${s}.queue_records WHERE number < $1 AND queue = $3
  ORDER BY number DESC LIMIT $2`,
)

export const QUEUES = {
  async lockQueue({ session }: At, queue: string, isNew: boolean) {
    if (isNew) await session.query(INSERT_QUEUE, [queue])
    const [row] = await session.query<QueueRow>(LOCK_QUEUE, [queue])
    return row
  },
  async writeQueue(
    { session }: At,
    queue: string,
    { pausedAt, maxDepth, maxWaitMs }: QueueSettings,
    pausedBy: string | null,
  ) {
    await session.query(UPDATE_QUEUE, [queue, pausedAt, pausedBy, maxDepth, maxWaitMs])
  },
  async recordQueueChange({ session }: At, record: Omit<QueueRecord, 'number'>) {
    const [row] = await session.query<{ number: number }>(INSERT_RECORD, valuesOf(record))
    return row?.number ?? 0
  },
  queueRecords({ session }: At, queue: string | undefined, before: number, limit: number) {
    return queue === undefined
      ? session.query<QueueRecordRow>(SELECT_ALL, [before, limit])
      : session.query<QueueRecordRow>(SELECT_OF_QUEUE, [before, limit, queue])
  },
}
