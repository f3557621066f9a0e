/** Notices of filters that matched nothing because of a type or a queue that nobody uses. */
import type { JobFilter, Store } from '../stores/store.ts'
import type { Call } from './spec.ts'
import { visible } from './visible.ts'

/**
 * Says which types and queues of a filter have no jobs at all. They are open sets, so a typo is not
 * an error; and a filter that matches nothing is told apart from one that cannot match.
 */
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
    output.say(`notice: no job of ${what} "${visible(value)}" is in this store. Check the name.`)
  }
}

async function hasJobs(store: Store, filter: JobFilter): Promise<boolean> {
  const { items, damaged = [] } = await store.list(filter, { limit: 1 })
  return items.length + damaged.length > 0
}
