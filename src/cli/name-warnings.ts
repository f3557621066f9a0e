/** Warns about names without jobs: types and queues are not registered, so a typo is no error. */
import type { Pawl } from '../engine/pawl.ts'
import type { JobFilter, Store } from '../stores/contract/store.ts'
import { workerOf } from '../stores/worker-info.ts'
import type { Call } from './spec.ts'
import { visible } from './visible.ts'

/** The queues that existed before the command. */
interface KnownQueues {
  /** Returns the JSON field for a queue without jobs and workers. */
  notice(queue: string): { readonly notice?: string }
  /** Writes the same to stderr, unless the output is JSON. */
  warn(call: Pick<Call, 'output'>, queue: string): void
}

/** Reads which queues have jobs, or workers that name them. */
export async function knownQueues({ store }: Pick<Pawl, 'store'>): Promise<KnownQueues> {
  const used = (await store.listQueues()).filter(({ lanes }) =>
    Object.values(lanes).some((jobs) => jobs > 0),
  )
  const workers = (await store.listWorkers()).map((row) => workerOf(row, store.now()))
  const known = new Set([
    ...used.map(({ name }) => name),
    ...workers.flatMap(({ queues = [] }) => queues),
  ])
  const noticeOf = (queue: string) =>
    known.has(queue) ? undefined : 'this queue has no jobs and no workers'
  return {
    notice(queue) {
      const notice = noticeOf(queue)
      return notice === undefined ? {} : { notice }
    },
    warn({ output }, queue) {
      const notice = noticeOf(queue)
      if (notice === undefined || output.json) return
      output.say(`${visible(queue)}: ${notice}. Check its name: pawl queue list.`)
    },
  }
}

/** Warns if a filter matched nothing because its type or queue has no jobs. */
export async function sayUnseen(
  { output }: Pick<Call, 'output'>,
  store: Store,
  { type, queue }: Pick<JobFilter, 'type' | 'queue'>,
): Promise<void> {
  const conditions = [
    ['type', type, type === undefined ? {} : { type }],
    ['queue', queue, queue === undefined ? {} : { queue }],
  ] as const
  for (const [what, value, filter] of conditions) {
    if (value === undefined || (await hasJobs(store, filter))) continue
    output.say(`notice: this store has no job of ${what} "${visible(value)}". Check the name.`)
  }
}

async function hasJobs(store: Store, filter: JobFilter): Promise<boolean> {
  const { items, damaged = [] } = await store.list(filter, { limit: 1 })
  return items.length + damaged.length > 0
}
