import type { QueueInfo, Store } from '../../stores/contract/store.ts'
import { isLive, type WorkerInfo, workerOf } from '../../stores/worker-info.ts'
import type { Finding } from '../finding.ts'
import { shellWord } from '../shell-word.ts'
import type { StoreCheck, StoreCheckContext } from './check.ts'

/** How many overdue jobs of each queue are read. */
const SAMPLE_MAX = 50

/** Finds deadlocks as the hardening requirements (R0) define them: due work without a worker. */
export const queuesAreServed: StoreCheck = {
  name: 'queues-are-served',
  promise: 'P15',
  says: 'Every queue with due jobs has a live worker that can run them.',
  look: async (context) => {
    const { store, now, thresholds } = context
    const workers = (await store.listWorkers()).map((row) => {
      return { ...workerOf(row, now), live: isLive(row, now, thresholds.workerMs) }
    })
    const queues = await store.listQueues()
    const late = queues.filter(({ pausedAt, readySince }) => {
      return (
        pausedAt === undefined && readySince !== undefined && readySince + thresholds.dueMs < now
      )
    })
    const findings = await Promise.all(late.map((queue) => checkQueue(context, queue, workers)))
    return findings.flat()
  },
}

type Found = Omit<Finding, 'check'>

async function checkQueue(
  { store, now }: StoreCheckContext,
  queue: QueueInfo,
  workers: readonly WorkerInfo[],
): Promise<Found[]> {
  const evidence = { ready: queue.lanes.ready, waitedMs: now - (queue.readySince ?? now) }
  const own = workers.filter(({ live, queues }) => live && (queues?.includes(queue.name) ?? true))
  if (own.length === 0) {
    const what = 'it has due jobs, but no live worker serves it'
    const advice = `Start a worker: pawl work --jobs FILE --queue ${shellWord(queue.name)}`
    return [found(`queue ${queue.name}`, what, evidence, advice)]
  }
  const types = await typesWaiting(store, queue.name)
  const unknown = types.filter((type) =>
    own.every((worker) => !(worker.types ?? [type]).includes(type)),
  )
  const idle = own.filter(({ running, types: known }) => {
    return running === 0 && types.some((type) => known?.includes(type) ?? true)
  })
  return [
    ...unknown.map((type) => {
      const what = `jobs of type ${type} are due, but no live worker of this queue has that type`
      const advice = `Start a worker whose job file defines ${type}.`
      return found(`queue ${queue.name}`, what, { ...evidence, type }, advice)
    }),
    ...idle.map(({ id, state }) => {
      const what = `it is alive and idle, but does not claim the due jobs of queue ${queue.name}`
      return found(`worker ${id}`, what, { ...evidence, state }, 'Restart the worker.')
    }),
  ]
}

function found(subject: string, what: string, evidence: object, advice: string): Found {
  return { promise: 'P15', severity: 'warning', subject, what, evidence: { ...evidence }, advice }
}

async function typesWaiting(store: Store, queue: string): Promise<string[]> {
  const { items } = await store.list({ queue, lane: 'ready' }, { limit: SAMPLE_MAX })
  return [...new Set(items.map(({ type }) => type))]
}
