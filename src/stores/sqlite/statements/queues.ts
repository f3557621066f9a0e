/** Settings of queues, and the records of their changes. */
import type { QueueRow } from '../../queue-info.ts'
import {
  QUEUE_RECORD_COLUMNS,
  type QueueRecord,
  type QueueRecordRow,
  type QueueSettings,
  valuesOf,
} from '../../queue-records.ts'
import type { At } from './at.ts'

const SELECT_QUEUE = 'SELECT * FROM pawl_queues WHERE name = ?'

const UPSERT_QUEUE = `
  INSERT INTO pawl_queues (name, paused_at, paused_by, max_depth, max_wait_ms)
  VALUES (?1, ?2, ?3, ?4, ?5)
  ON CONFLICT (name) DO UPDATE SET paused_at = excluded.paused_at,
    paused_by = excluded.paused_by, max_depth = excluded.max_depth,
    max_wait_ms = excluded.max_wait_ms`

const INSERT_RECORD = `
  INSERT INTO pawl_queue_records (${QUEUE_RECORD_COLUMNS})
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number`

const SELECT_ALL = `
  SELECT * FROM pawl_queue_records WHERE number < ? ORDER BY number DESC LIMIT ?`
const SELECT_OF_QUEUE = `
  SELECT * FROM pawl_queue_records WHERE number < ? AND queue = ? ORDER BY number DESC LIMIT ?`

export const QUEUES = {
  /** The write lock covers the row, so that none has to be inserted for a lock. */
  lockQueue: ({ connection }: At, queue: string) => connection.get<QueueRow>(SELECT_QUEUE, queue),
  writeQueue(
    { connection }: At,
    queue: string,
    { pausedAt, maxDepth, maxWaitMs }: QueueSettings,
    pausedBy: string | null,
  ) {
    connection.run(UPSERT_QUEUE, queue, pausedAt, pausedBy, maxDepth, maxWaitMs)
  },
  recordQueueChange({ connection }: At, record: Omit<QueueRecord, 'number'>) {
    return connection.get<{ number: number }>(INSERT_RECORD, ...valuesOf(record))?.number ?? 0
  },
  queueRecords({ connection }: At, queue: string | undefined, before: number, limit: number) {
    return queue === undefined
      ? connection.all<QueueRecordRow>(SELECT_ALL, before, limit)
      : connection.all<QueueRecordRow>(SELECT_OF_QUEUE, before, queue, limit)
  },
}
