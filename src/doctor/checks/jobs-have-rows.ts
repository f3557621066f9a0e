import type { Job } from '../../core/job/job.ts'
import type { JobCheck } from './check.ts'

/** A job whose facts are there and whose row is not was accepted, and would never run. */
export const jobsHaveRows: JobCheck = {
  name: 'jobs-have-rows',
  promise: 'P1',
  says: 'Every job of which there are facts or effects has a row.',
  look: ({ dossier: { row, facts, effects }, folded }, { rival }) => {
    if (row !== null) return []
    const evidence = { facts: facts.length, effects: effects.length, ...(rival && { rival }) }
    return [{ what: `there is no row of it${aboutKey(folded, rival)}`, evidence }]
  },
}

/** Without its row a key is free, and the same work can be enqueued again. */
function aboutKey(folded: Job | null, rival: string | undefined): string {
  if (folded === null) return '; its facts do not say whether it had a key'
  if (rival === undefined) return ''
  return `, and job ${rival} was enqueued under its key "${folded.key}"`
}
