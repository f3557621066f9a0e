/** Changes the settings of queues; `../queue-records.ts` has the rules and the form of records. */
import type { RepairAuthor } from '../contract/examination.ts'
import type { Page, Requester } from '../contract/store.ts'
import {
  pageSizeOf,
  pausedByAfter,
  type QueueChange,
  type QueueRecord,
  type QueueRecordFilter,
  RESTORED,
  recordOf,
  settingsAfter,
  settingsOf,
  toRecordPage,
  UNSET,
} from '../queue-records.ts'
import type { Tx, Verb } from './operations.ts'

/**
 * Changes a queue and records it; returns `undefined` if its settings stay the same. The row of the
 * queue is locked, so that each record begins with the settings that the one before it ended with.
 */
export function* changeQueue(
  tx: Tx,
  change: QueueChange,
  requester: Requester,
): Verb<QueueRecord | undefined> {
  const { queue, action } = change
  // A queue without a row gets one only if something changes: it would be listed from then on.
  const isNew = settingsAfter(UNSET, change, tx.now) !== undefined
  const row = yield* tx.lockQueue(queue, isNew)
  const before = settingsOf(row)
  const after = settingsAfter(before, change, tx.now)
  if (after === undefined) return undefined
  const by = action === 'limit' ? (row?.paused_by ?? null) : (requester.operator ?? requester.actor)
  yield* tx.writeQueue(queue, after, by)
  const record = recordOf(change, requester, tx.now, before, after)
  const number = yield* tx.recordQueueChange(record)
  return { number, ...record }
}

/** Sets the settings of a queue to those of its last record, and keeps a note of the old ones. */
export function* restoreQueue(tx: Tx, queue: string, by: RepairAuthor): Verb<void> {
  const row = yield* tx.lockQueue(queue, true)
  const { items } = yield* listQueueRecords(tx, { queue }, { limit: 1 })
  const [record] = items
  if (record === undefined) return
  yield* tx.writeQueue(queue, record.after, pausedByAfter(record, row))
  yield* tx.noteRow('queues', JSON.stringify(row ?? { name: queue }), RESTORED, by)
}

/** Records of changes, newest first. */
export function* listQueueRecords(
  tx: Tx,
  { queue }: QueueRecordFilter,
  { limit, after }: { readonly limit?: number; readonly after?: string },
): Verb<Page<QueueRecord>> {
  const size = pageSizeOf(limit)
  const before = after === undefined ? Number.MAX_SAFE_INTEGER : Number(after)
  return toRecordPage(yield* tx.queueRecords(queue, before, size + 1), size)
}
