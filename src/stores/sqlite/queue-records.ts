/** Changes the settings of queues and keeps records of it; see `../queue-records.ts`. */

import type { Surgeon } from '../examination.ts'
import type { QueueRow } from '../queue-info.ts'
import * as records from '../queue-records.ts'
import type { Asker, Page } from '../store.ts'
import type { Connection } from './connect.ts'
import { keepNote } from './mend.ts'

const SELECT_QUEUE = 'SELECT * FROM pawl_queues WHERE name = ?'

const UPSERT_QUEUE = `
  INSERT INTO pawl_queues (name, paused_at, paused_by, max_depth, max_wait_ms)
  VALUES (?1, ?2, ?3, ?4, ?5)
  ON CONFLICT (name) DO UPDATE SET paused_at = excluded.paused_at,
    paused_by = excluded.paused_by, max_depth = excluded.max_depth,
    max_wait_ms = excluded.max_wait_ms`

const INSERT_RECORD = `
  INSERT INTO pawl_queue_records (${records.QUEUE_RECORD_COLUMNS})
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number`

/** Changes a queue and records it; `undefined` if its settings stay the same. */
export function changeQueue(
  connection: Connection,
  now: number,
  change: records.QueueChange,
  asker: Asker,
): records.QueueRecord | undefined {
  const { queue, action } = change
  const row = connection.get<QueueRow>(SELECT_QUEUE, queue)
  const before = records.settingsOf(row)
  const after = records.settingsAfter(before, change, now)
  if (after === undefined) return undefined
  const by = action === 'limit' ? (row?.paused_by ?? null) : (asker.operator ?? asker.actor)
  connection.run(UPSERT_QUEUE, queue, after.pausedAt, by, after.maxDepth, after.maxWaitMs)
  const record = records.recordOf(change, asker, now, before, after)
  const inserted = connection.get<{ number: number }>(INSERT_RECORD, ...records.valuesOf(record))
  return { number: inserted?.number ?? 0, ...record }
}

/** Makes the settings of a queue what its last record says. */
export function restoreQueue(
  connection: Connection,
  now: number,
  queue: string,
  by: Surgeon,
): void {
  const row = connection.get<QueueRow>(SELECT_QUEUE, queue)
  const { items } = listQueueRecords(connection, { queue }, { limit: 1 })
  const [record] = items
  if (record === undefined) return
  const { pausedAt, maxDepth, maxWaitMs } = record.after
  const pausedBy = records.pausedByAfter(record, row)
  connection.run(UPSERT_QUEUE, queue, pausedAt, pausedBy, maxDepth, maxWaitMs)
  const content = JSON.stringify(row ?? { name: queue })
  keepNote(connection, now, 'pawl_queues', content, records.RESTORED, by)
}

const LAST = Number.MAX_SAFE_INTEGER

const SELECT_ALL = `
  SELECT * FROM pawl_queue_records WHERE number < ? ORDER BY number DESC LIMIT ?`
const SELECT_OF_QUEUE = `
  SELECT * FROM pawl_queue_records WHERE number < ? AND queue = ? ORDER BY number DESC LIMIT ?`

/** Records of changes, newest first. */
export function listQueueRecords(
  connection: Connection,
  { queue }: records.QueueRecordFilter,
  { limit, after }: { readonly limit?: number; readonly after?: string },
): Page<records.QueueRecord> {
  const size = records.pageSizeOf(limit)
  const before = after === undefined ? LAST : Number(after)
  const rows =
    queue === undefined
      ? connection.all<records.QueueRecordRow>(SELECT_ALL, before, size + 1)
      : connection.all<records.QueueRecordRow>(SELECT_OF_QUEUE, before, queue, size + 1)
  return records.toRecordPage(rows, size)
}
