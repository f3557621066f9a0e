import { loadPeer, type Open, PAYLOAD, repeat, TYPE } from '../contender.ts'

/** What is used of plainjob. */
interface Plainjob {
  better(database: unknown): unknown
  defineQueue(options: object): {
    add(type: string, data: unknown): unknown
    addMany(type: string, data: readonly unknown[]): unknown
    countJobs(filter: { status: number }): number
    close(): void
  }
  defineWorker(
    type: string,
    handler: () => void | Promise<void>,
    options: object,
  ): { start(): Promise<void>; stop(): Promise<void> }
}

const PENDING = 0
const DONE = 2
const silent = { error: () => {}, warn: () => {}, info: () => {}, debug: () => {} }

export const openPlainjob: Open = async ({ home, place, options }) => {
  const { default: Database } = await loadPeer<{ default: new (path: string) => unknown }>(
    home,
    'better-sqlite3',
  )
  const { better, defineQueue, defineWorker } = await loadPeer<Plainjob>(home, 'plainjob')
  const queue = defineQueue({ connection: better(new Database(place)), logger: silent })
  return {
    add: async () => queue.add(TYPE, PAYLOAD),
    addMany: async (jobs) => {
      queue.addMany(TYPE, repeat(jobs, PAYLOAD))
    },
    work: async (handler) => {
      const worker = defineWorker(TYPE, handler, { queue, logger: silent, ...options })
      const ended = worker.start()
      return async () => {
        await worker.stop()
        await ended
      }
    },
    // By its own connection: a second copy of SQLite in a process would break the file's locks.
    count: async () => ({
      waiting: queue.countJobs({ status: PENDING }),
      finished: queue.countJobs({ status: DONE }),
      steps: 0,
    }),
    close: async () => queue.close(),
  }
}
