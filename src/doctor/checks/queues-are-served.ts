import type { QueueInfo, Store } from '../../stores/store.ts'
import { isLive, type WorkerInfo, workerOf } from '../../stores/worker-info.ts'
import type { Finding } from '../finding.ts'
import { shellWord } from '../shell-word.ts'
import type { StoreCheck, Surgery } from './check.ts'

/** How many of the jobs that have waited too long are looked at, in each queue. */
const SAMPLE_MAX = 50

/** Deadlocks in the sense of the hardening requirements (R0): work that nobody takes up. */
export const queuesAreServed: StoreCheck = {
  name: 'queues-are-served',
  promise: 'P15',
  says: 'Every queue with work that is due has a live worker that takes it.',
  look: async (surgery) => {
    const { store, now, patience } = surgery
    const workers = (await store.listWorkers()).map((row) => {
      return { ...workerOf(row, now), live: isLive(row, now, patience.workerMs) }
    })
    const queues = await store.listQueues()
    const late = queues.filter(({ pausedAt, readySince }) => {
      return pausedAt === undefined && readySince !== undefined && readySince + patience.dueMs < now
    })
    const findings = await Promise.all(late.map((queue) => lookAt(surgery, queue, workers)))
    return findings.flat()
  },
}

type Found = Omit<Finding, 'check'>

async function lookAt(
  { store, now }: Surgery,
  queue: QueueInfo,
  workers: readonly WorkerInfo[],
): Promise<Found[]> {
  const evidence = { ready: queue.lanes.ready, waitedMs: now - (queue.readySince ?? now) }
  const own = workers.filter(({ live, queues }) => live && (queues?.includes(queue.name) ?? true))
  if (own.length === 0) {
    const what = 'it has work that is due, and no live worker takes from it'
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
      const what = `jobs of type ${type} are due, and no live worker of it knows that type`
      const advice = `Start a worker whose file of jobs defines ${type}.`
      return found(`queue ${queue.name}`, what, { ...evidence, type }, advice)
    }),
    ...idle.map(({ id, state }) => {
      const what = `it is alive and idle, and deaf to work that is due in queue ${queue.name}`
      return found(`worker ${id}`, what, { ...evidence, state }, 'Restart it.')
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
