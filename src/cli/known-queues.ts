/** Notices of queues that nobody uses: names are not registered, so a typo makes a new queue. */
import type { Pawl } from '../engine/pawl.ts'
import { workerOf } from '../stores/worker-info.ts'
import type { Call } from './spec.ts'
import { visible } from './visible.ts'

/** The queues that were there before the command. */
interface KnownQueues {
  /** What JSON says of a queue that has no jobs and no workers. */
  notice(queue: string): { readonly notice?: string }
  /** The same on stderr, unless the output is JSON. */
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
    known.has(queue) ? undefined : 'this queue has no jobs and no workers so far'
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
