import { violationsOf } from './violations.ts'

/** What was committed twice had its effect twice; nobody can undo that here. */
export const oneCommit = violationsOf({
  name: 'one-commit',
  promise: 'P3',
  says: 'At most one execution of a job was committed.',
  advice: 'Compare the results of both commits: what they did to your own tables was done twice.',
})
