import { CLOCK_SLACK_MS } from '../../core/job/fence.ts'
import type { StoreCheck } from './check.ts'

/** A worker with a future time would count as alive until then. */
export const workersHaveReported: StoreCheck = {
  name: 'workers-have-reported',
  promise: 'P15',
  says: 'No worker has a start or report time in the future.',
  look: async ({ store, now }) => {
    const latest = now + CLOCK_SLACK_MS
    const rows = await store.listWorkers()
    return rows
      .filter(({ startedAt, seenAt }) => startedAt > latest || seenAt > latest)
      .map(({ id, startedAt, seenAt }) => ({
        promise: 'P15',
        severity: 'error',
        subject: `worker ${id}`,
        what: 'its start or report time is in the future',
        evidence: { worker: id, startedAt, seenAt, now },
        remedy: 'forget the worker',
        advice: 'A worker that is alive reports again within seconds.',
      }))
  },
}
