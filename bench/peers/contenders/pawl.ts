/** Pawl itself, by the API that its users have. */
import { createPawl, defineJob, type StoreOptions } from 'pawl'
import {
  inBatches,
  type Open,
  PAYLOAD,
  QUEUE,
  repeat,
  type Session,
  STEPS,
  TYPE,
} from '../contender.ts'
import { countOnPostgres, countOnSqlite } from '../counting.ts'

interface Options {
  /** Slots of the worker; the default if absent. */
  readonly concurrency?: number
  readonly durability?: 'full' | 'relaxed'
}

// The numbers of lanes and facts are those of src/core/job/lanes.ts and facts.ts.
const counts = (prefix: string) => ({
  waiting: `SELECT count(*) FROM ${prefix}jobs WHERE lane = 2`,
  finished: `SELECT count(*) FROM ${prefix}jobs WHERE lane = 5`,
  steps: `SELECT count(*) FROM ${prefix}ledger WHERE kind = 22`,
})

/** Opens Pawl on the database at the place. */
export const openPawl: Open = async ({ place, options, steps }) => {
  const { concurrency, durability } = options as Options
  const onPostgres = place.startsWith('postgres:')
  const own = durability && { durability }
  const store: StoreOptions = onPostgres
    ? { postgres: { connectionString: place, ...own } }
    : { sqlite: { path: place, ...own } }
  let handler: () => void | Promise<void> = () => {}
  const plain = defineJob({ name: TYPE, queue: QUEUE, run: () => handler() })
  const stepping: typeof plain = defineJob({
    name: TYPE,
    queue: QUEUE,
    run: async ({ step }) => {
      for (let i = 0; i < STEPS; i++) await step(`step-${i}`, () => i)
      await handler()
    },
  })
  const job = steps ? stepping : plain
  const pawl = await createPawl({ store, jobs: [job] })
  const session: Session = {
    add: () => pawl.enqueue(job, PAYLOAD),
    addMany: (jobs) =>
      inBatches(jobs, 1000, (count) => pawl.enqueueMany(job, repeat(count, { input: PAYLOAD }))),
    work: async (given) => {
      handler = given
      const slots = concurrency === undefined ? {} : { concurrency }
      const worker = await pawl.work({ queues: [QUEUE], ...slots })
      return () => worker.stop().then(() => {})
    },
    count: async () =>
      onPostgres ? countOnPostgres(place, counts('pawl.')) : countOnSqlite(place, counts('pawl_')),
    close: () => pawl.close(),
  }
  return session
}
