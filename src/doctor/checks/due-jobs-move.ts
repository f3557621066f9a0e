import type { JobCheck } from './check.ts'

/** A job whose time has come is made ready by any worker. */
export const dueJobsMove: JobCheck = {
  name: 'due-jobs-move',
  promise: 'P15',
  says: 'No job waits for a time that has passed.',
  look: ({ lane, job }, { now, patience }) => {
    const dueAt = job?.runAt ?? null
    if (lane !== 'waiting' || dueAt === null || dueAt + patience.dueMs >= now) return []
    const what = `it has been due for ${now - dueAt} ms, and still waits`
    const advice = 'Start a worker: it makes ready what is due.'
    return [{ what, severity: 'warning', remedy: 'make the job ready', advice }]
  },
}
