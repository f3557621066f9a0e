import type { QueueInfo, Store } from '../../stores/contract/store.ts'
import type { QueueRecord } from '../../stores/queue-records.ts'
import type { StoreCheck } from './check.ts'

const PAGE = 1000

/**
 * Compares the settings of each queue with its last record. A queue that has lost its pause would
 * run jobs that an operator has stopped. Queues without records are not compared.
 */
export const queuesAreAsRecorded: StoreCheck = {
  name: 'queues-are-as-recorded',
  promise: 'P9',
  says: 'Every queue is paused and bounded as its last record says.',
  look: async ({ store }) => {
    const suspects = await findStray(store, await lastRecords(store))
    // A change between the two reads looks like a difference, so differences are read again.
    const names = new Set(suspects.map(({ queue }) => queue))
    const again = names.size === 0 ? [] : await lastRecords(store, names)
    const found = again.length === 0 ? [] : await findStray(store, again)
    return found.map(({ queue, number, after }) => ({
      promise: 'P9',
      severity: 'error',
      subject: `queue ${queue}`,
      what: `its settings differ from its last record, number ${number}`,
      evidence: { queue, record: after },
      remedy: 'restore the queue',
    }))
  },
}

/** Returns the last record of each queue, or of the named ones. */
async function lastRecords(store: Store, names?: ReadonlySet<string>): Promise<QueueRecord[]> {
  if (names !== undefined) {
    const pages = [...names].map((queue) => store.listQueueRecords({ queue }, { limit: 1 }))
    return (await Promise.all(pages)).flatMap(({ items }) => items)
  }
  const last = new Map<string, QueueRecord>()
  for (let after: string | undefined; ; ) {
    const page = await store.listQueueRecords({}, { limit: PAGE, ...(after && { after }) })
    for (const record of page.items) if (!last.has(record.queue)) last.set(record.queue, record)
    if (page.next === undefined) return [...last.values()]
    after = page.next
  }
}

async function findStray(store: Store, records: readonly QueueRecord[]): Promise<QueueRecord[]> {
  if (records.length === 0) return []
  const queues = new Map((await store.listQueues()).map((queue) => [queue.name, queue]))
  return records.filter(({ queue, after }) => !isSame(queues.get(queue), after))
}

function isSame(queue: QueueInfo | undefined, after: QueueRecord['after']): boolean {
  const { pausedAt = null, maxDepth = null, maxWaitMs = null } = queue ?? {}
  const isKept = maxDepth === after.maxDepth && maxWaitMs === after.maxWaitMs
  return isKept && pausedAt === after.pausedAt
}
