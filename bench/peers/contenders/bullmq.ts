/** BullMQ on Redis and on PostgreSQL, which it can use since version 6. */
import { inBatches, loadPeer, type Open, PAYLOAD, QUEUE, repeat, TYPE } from '../contender.ts'

/** What is used of BullMQ. */
interface Classes {
  Queue: new (name: string, options: object) => Queue
  Worker: new (name: string, handler: () => Promise<void>, options: object) => Worker
}

interface Queue {
  add(name: string, data: object): Promise<unknown>
  addBulk(jobs: readonly object[]): Promise<unknown>
  getJobCounts(...states: string[]): Promise<Record<string, number>>
  waitUntilReady(): Promise<unknown>
  close(): Promise<void>
}

interface Worker {
  on(event: 'error', listener: (error: Error) => void): void
  waitUntilReady(): Promise<unknown>
  close(): Promise<void>
}

interface BullMq extends Classes {
  withBackend(factory: unknown): Classes
  createPostgresBackend: unknown
}

/** The place is a connection string of PostgreSQL, or the port of a Redis. */
export const openBullMq: Open = async ({ home, place, options }) => {
  const bullmq = await loadPeer<BullMq>(home, 'bullmq')
  const onPostgres = place.startsWith('postgres:')
  const { Queue, Worker } = onPostgres ? bullmq.withBackend(bullmq.createPostgresBackend) : bullmq
  const connection = onPostgres
    ? { connectionString: place, migrate: true }
    : { host: '127.0.0.1', port: Number(place), maxRetriesPerRequest: null }
  const queue = new Queue(QUEUE, { connection })
  await queue.waitUntilReady()
  return {
    add: () => queue.add(TYPE, PAYLOAD),
    addMany: (jobs) =>
      inBatches(jobs, 1000, (count) => queue.addBulk(repeat(count, { name: TYPE, data: PAYLOAD }))),
    work: async (handler) => {
      const worker = new Worker(QUEUE, async () => handler(), { connection, ...options })
      worker.on('error', (error) => process.stderr.write(`bullmq: ${error.message}\n`))
      await worker.waitUntilReady()
      return () => worker.close()
    },
    count: async () => {
      const { waiting = 0, completed = 0 } = await queue.getJobCounts('waiting', 'completed')
      return { waiting, finished: completed, steps: 0 }
    },
    close: () => queue.close(),
  }
}
