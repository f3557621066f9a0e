import { span } from '../../core/format.ts'
import type { JobCheck } from './check.ts'

/** Any worker makes due jobs ready, so an overdue one shows that no worker runs. */
export const dueJobsMove: JobCheck = {
  name: 'due-jobs-move',
  promise: 'P15',
  says: 'No job waits for a time that has passed.',
  look: ({ lane, job }, { now, thresholds }) => {
    const dueAt = job?.runAt ?? null
    if (lane !== 'waiting' || dueAt === null || dueAt + thresholds.dueMs >= now) return []
    const what = `it has been due for ${span(now - dueAt)} and is still waiting`
    const advice = 'Start a worker, which makes due jobs ready: pawl work --jobs FILE'
    return [{ what, severity: 'warning', remedy: 'make the job ready', advice }]
  },
}
