import { isLive } from '../../stores/worker-info.ts'
import type { JobCheck } from './check.ts'

/** An expired lease is taken back by any worker; that it was not means that none is there. */
export const heldJobsHaveLeases: JobCheck = {
  name: 'held-jobs-have-leases',
  promise: 'P7',
  says: 'Every held job has a lease that runs, and a holder that is alive.',
  look: ({ lane, dossier, job }, { now, workers, patience }) => {
    const { lease_until: until = null, worker = null } = dossier.row ?? {}
    if (lane !== 'held' || until === null || job?.stalled) return []
    const evidence = { worker, leaseUntil: until, status: dossier.row?.status }
    if (until + patience.dueMs < now) {
      const what = `its lease ended ${now - until} ms ago, and nobody has taken it back`
      const advice = 'Start a worker, which recovers expired leases.'
      return [{ what, evidence, severity: 'warning', remedy: 'expire the lease', advice }]
    }
    const holder = workers.get(worker ?? '')
    if (holder !== undefined && isLive(holder, now, patience.workerMs)) return []
    const gone = holder === undefined ? 'is not known' : 'was not heard of for too long'
    const what = `its holder ${worker} ${gone}; the lease ends in ${until - now} ms`
    return [{ what, evidence, severity: 'notice' }]
  },
}
