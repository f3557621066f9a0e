import { isCommitted } from '../../core/job/job.ts'
import { lostEffects } from '../doubts.ts'
import type { JobCheck } from './check.ts'

/** Committed means done as soon as every effect is delivered. */
export const commitsAreFinished: JobCheck = {
  name: 'commits-are-finished',
  promise: 'P10',
  says: 'Every committed job is done or has effects that wait, and all that it declared are there.',
  look: (patient, { now, patience }) => {
    const { job, effects, lane } = patient
    const lost = lostEffects(patient).map((what) => ({
      what,
      advice: 'What is lost cannot be delivered: do it by hand, from the result of the job.',
    }))
    const isOpen = effects.some(({ state }) => state !== 'delivered')
    const isUnfinished = lane === 'delivering' && job !== null && isCommitted(job) && !isOpen
    return isUnfinished && lost.length === 0 && job.updatedAt + patience.dueMs < now
      ? [{ what: 'all its effects are delivered, and it is not done', remedy: 'finish the commit' }]
      : lost
  },
}
