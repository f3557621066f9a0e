import { isLive, workerOf } from '../../stores/worker-info.ts'
import type { StoreCheck } from './check.ts'

/**
 * A handler that blocks its process loses its lease if the main thread renews it. A worker that
 * could have a thread for that reports why it has none. Handlers that do not block need no thread,
 * so this is no error.
 */
export const leasesOutlastHandlers: StoreCheck = {
  name: 'leases-outlast-handlers',
  promise: 'P7',
  says: 'Every live worker that can have a thread to renew its leases has one.',
  look: async ({ store, now, thresholds }) => {
    const rows = await store.listWorkers()
    return rows
      .filter((row) => isLive(row, now, thresholds.workerMs))
      .map((row) => workerOf(row, now))
      .flatMap(({ id, renewal, renewalAdvice: advice }) => {
        if (renewal !== 'timer' || advice === undefined) return []
        const what = 'its main thread renews its leases: a handler that blocks it loses its job'
        const evidence = { worker: id, renewal }
        return [
          { promise: 'P7', severity: 'notice', subject: `worker ${id}`, what, evidence, advice },
        ]
      })
  },
}
