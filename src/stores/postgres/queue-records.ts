/** Changes the settings of queues and keeps records of it; see `../queue-records.ts`. */
import type { Surgeon } from '../examination.ts'
import type { QueueRow } from '../queue-info.ts'
import * as records from '../queue-records.ts'
import type { Asker, Page } from '../store.ts'
import { type OwnSession, type Session, statement } from './connect.ts'
import { keepNote } from './mend.ts'

const LOCK_QUEUE = statement((s) => `SELECT * FROM ${s}.queues WHERE name = $1 FOR UPDATE`)

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
  INSERT INTO ${s}.queue_records (${records.QUEUE_RECORD_COLUMNS})
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING number`,
)

/**
 * Changes a queue and records it; `undefined` if its settings stay the same. Must be called inside
 * a transaction: the row of the queue is locked, so that each record begins where the one before it
 * ended.
 */
export async function changeQueue(
  session: Session,
  now: number,
  change: records.QueueChange,
  asker: Asker,
): Promise<records.QueueRecord | undefined> {
  const { queue, action } = change
  // A queue that has no row gets one only if something changes: it would be listed from then on.
  if (records.settingsAfter(records.UNSET, change, now) !== undefined) {
    await session.query(INSERT_QUEUE, [queue])
  }
  const [row] = await session.query<QueueRow>(LOCK_QUEUE, [queue])
  const before = records.settingsOf(row)
  const after = records.settingsAfter(before, change, now)
  if (after === undefined) return undefined
  const by = action === 'limit' ? (row?.paused_by ?? null) : (asker.operator ?? asker.actor)
  await session.query(UPDATE_QUEUE, [queue, after.pausedAt, by, after.maxDepth, after.maxWaitMs])
  const record = records.recordOf(change, asker, now, before, after)
  const values = records.valuesOf(record)
  const [inserted] = await session.query<{ number: number }>(INSERT_RECORD, values)
  return { number: inserted?.number ?? 0, ...record }
}

/** Makes the settings of a queue what its last record says; must be inside a transaction. */
export async function restoreQueue(
  session: OwnSession,
  now: number,
  queue: string,
  by: Surgeon,
): Promise<void> {
  await session.query(INSERT_QUEUE, [queue])
  const [row] = await session.query<QueueRow>(LOCK_QUEUE, [queue])
  const { items } = await listQueueRecords(session, { queue }, { limit: 1 })
  const [record] = items
  if (record === undefined) return
  const { pausedAt, maxDepth, maxWaitMs } = record.after
  const pausedBy = records.pausedByAfter(record, row)
  await session.query(UPDATE_QUEUE, [queue, pausedAt, pausedBy, maxDepth, maxWaitMs])
  await keepNote(session, now, 'queues', JSON.stringify(row), records.RESTORED, by)
}

const SELECT_ALL = statement(
  (s) => `
  SELECT * FROM ${s}.queue_records WHERE number < $1 ORDER BY number DESC LIMIT $2`,
)
const SELECT_OF_QUEUE = statement(
  (s) => `
  SELECT * FROM ${s}.queue_records WHERE number < $1 AND queue = $3
  ORDER BY number DESC LIMIT $2`,
)

/** Records of changes, newest first. */
export async function listQueueRecords(
  session: Session,
  { queue }: records.QueueRecordFilter,
  { limit, after }: { readonly limit?: number; readonly after?: string },
): Promise<Page<records.QueueRecord>> {
  const size = records.pageSizeOf(limit)
  const window = [after === undefined ? Number.MAX_SAFE_INTEGER : Number(after), size + 1]
  const rows =
    queue === undefined
      ? await session.query<records.QueueRecordRow>(SELECT_ALL, window)
      : await session.query<records.QueueRecordRow>(SELECT_OF_QUEUE, [...window, queue])
  return records.toRecordPage(rows, size)
}
