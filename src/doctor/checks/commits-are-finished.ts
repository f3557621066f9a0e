import { isCommitted } from '../../core/job/job.ts'
import { lostEffects } from '../doubts.ts'
import type { JobCheck } from './check.ts'

export const commitsAreFinished: JobCheck = {
  name: 'commits-are-finished',
  promise: 'P10',
  says: 'Every committed job is done or waits for deliveries, and no declared effect is missing.',
  look: (examined, { now, thresholds }) => {
    const { job, effects, lane } = examined
    const lost = lostEffects(examined).map((what) => ({
      what,
      advice: 'A lost effect cannot be delivered: do its work by hand, from the result of the job.',
    }))
    const isOpen = effects.some(({ state }) => state !== 'delivered')
    const isUnfinished = lane === 'delivering' && job !== null && isCommitted(job) && !isOpen
    return isUnfinished && lost.length === 0 && job.updatedAt + thresholds.dueMs < now
      ? [{ what: 'all its effects are delivered, but it is not done', remedy: 'finish the commit' }]
      : lost
  },
}
