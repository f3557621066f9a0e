import { violationsOf } from './violations.ts'

/** What a holder wrote bears the claim of its attempt, while its lease ran. */
export const writesWereFenced = violationsOf({
  name: 'writes-were-fenced',
  promise: 'P4',
  says: 'Whatever a worker wrote bears the claim of its attempt, and its lease still ran.',
})
