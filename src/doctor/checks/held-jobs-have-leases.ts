import { span } from '../../core/format.ts'
import { isLive } from '../../stores/worker-info.ts'
import type { JobCheck } from './check.ts'

/** Any worker recovers expired leases, so an expired one shows that no worker runs. */
export const heldJobsHaveLeases: JobCheck = {
  name: 'held-jobs-have-leases',
  promise: 'P7',
  says: 'Every held job has a valid lease, and its worker is alive.',
  look: ({ lane, stored, job }, { now, workers, thresholds }) => {
    const { lease_until: until = null, worker = null } = stored.row ?? {}
    if (lane !== 'held' || until === null || job?.stalled) return []
    const evidence = { worker, leaseUntil: until, status: stored.row?.status }
    if (until + thresholds.dueMs < now) {
      const what = `its lease expired ${span(now - until)} ago and has not been recovered`
      const advice = 'Start a worker, which recovers expired leases: pawl work --jobs FILE'
      return [{ what, evidence, severity: 'warning', remedy: 'expire the lease', advice }]
    }
    const holder = workers.get(worker ?? '')
    if (holder !== undefined && isLive(holder, now, thresholds.workerMs)) return []
    const gone = holder === undefined ? 'has no row' : 'has stopped reporting'
    const what = `its worker ${worker} ${gone}; the lease expires in ${span(until - now)}`
    return [{ what, evidence, severity: 'notice' }]
  },
}
