import type { Job } from '../../core/job/job.ts'
import type { JobCheck } from './check.ts'

/** A job without a row was accepted, but would never run. */
export const jobsHaveRows: JobCheck = {
  name: 'jobs-have-rows',
  promise: 'P1',
  says: 'Every job that has facts or effects has a row.',
  look: ({ stored: { row, facts, effects }, folded }, { rival }) => {
    if (row !== null) return []
    const evidence = { facts: facts.length, effects: effects.length, ...(rival && { rival }) }
    return [{ what: `its row is missing${aboutKey(folded, rival)}`, evidence }]
  },
}

/** Without the row the key is free, and the same work can be enqueued again. */
function aboutKey(folded: Job | null, rival: string | undefined): string {
  if (folded === null) return '; its facts do not say whether it had a key'
  if (rival === undefined) return ''
  return `, and job ${rival} was enqueued with its key "${folded.key}"`
}
