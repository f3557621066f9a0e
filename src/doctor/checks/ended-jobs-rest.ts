import { violationsOf } from './violations.ts'

/** Ended jobs change by operators' edges alone, and succeeded ones never. */
export const endedJobsRest = violationsOf({
  name: 'ended-jobs-rest',
  promise: 'P6',
  says: 'No job changed after it had ended, but by an edge for operators.',
})
