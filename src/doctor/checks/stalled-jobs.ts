import { workerOf } from '../../stores/worker-info.ts'
import type { JobCheck } from './check.ts'

/** Deadlocks in the sense of the hardening requirements (R0): attempts without progress. */
export const stalledJobs: JobCheck = {
  name: 'stalled-jobs',
  promise: 'P15',
  says: 'No job waits for the approval of its recovery, hangs, or runs longer than is usual.',
  look: ({ id, job, lane }, { now, patience, workers }) => {
    if (job === null || lane !== 'held') return []
    if (job.stalled) {
      const advice = `pawl job approve ${id} --reason …`
      const what = 'its lease expired, and its recovery waits for approval'
      return [{ what, severity: 'warning', advice }]
    }
    const row = workers.get(job.execution?.worker ?? '')
    const silent = row && workerOf(row, now).silent.find((one) => one.job === id)
    if (silent?.attempt === job.attempt) {
      const what = `its handler has shown no activity for ${now - silent.since} ms`
      const evidence = { worker: job.execution?.worker, since: silent.since }
      const advice = `pawl job cancel ${id} --reason …, and a stallTimeout for jobs of its type`
      return [{ what, severity: 'warning', evidence, advice }]
    }
    const runsFor = now - (job.startedAt ?? now)
    if (runsFor <= patience.stalledMs) return []
    const what = `its attempt has been running for ${runsFor} ms`
    const evidence = { worker: job.execution?.worker, startedAt: job.startedAt }
    const advice = `pawl job show ${id}, and where it hangs: pawl job cancel ${id} --reason …`
    return [{ what, severity: 'notice', evidence, advice }]
  },
}
