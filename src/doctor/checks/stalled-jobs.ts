import { span } from '../../core/format.ts'
import { workerOf } from '../../stores/worker-info.ts'
import type { JobCheck } from './check.ts'

/** Finds deadlocks as the hardening requirements (R0) define them: attempts without progress. */
export const stalledJobs: JobCheck = {
  name: 'stalled-jobs',
  promise: 'P15',
  says: 'No job waits for approval of its recovery, shows no activity, or runs unusually long.',
  look: ({ id, job, lane }, { now, thresholds, workers }) => {
    if (job === null || lane !== 'held') return []
    if (job.stalled) {
      const advice = `pawl job approve ${id} --reason …`
      const what = 'its lease expired, and its recovery waits for approval'
      return [{ what, severity: 'warning', advice }]
    }
    const row = workers.get(job.execution?.worker ?? '')
    const silent = row && workerOf(row, now).silent.find((one) => one.job === id)
    if (silent?.attempt === job.attempt) {
      const what = `its handler has shown no activity for ${span(now - silent.since)}`
      const evidence = { worker: job.execution?.worker, since: silent.since }
      const advice = `pawl job cancel ${id} --reason …; set a stallTimeout for this job type`
      return [{ what, severity: 'warning', evidence, advice }]
    }
    const runsFor = now - (job.startedAt ?? now)
    if (runsFor <= thresholds.stalledMs) return []
    const what = `its attempt has been running for ${span(runsFor)}`
    const evidence = { worker: job.execution?.worker, startedAt: job.startedAt }
    const advice = `pawl job show ${id}; if it hangs: pawl job cancel ${id} --reason …`
    return [{ what, severity: 'notice', evidence, advice }]
  },
}
