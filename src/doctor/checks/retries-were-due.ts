import { violationsOf } from './violations.ts'

/** No claim came before its time, and no retry outside of its policy. */
export const retriesWereDue = violationsOf({
  name: 'retries-were-due',
  promise: 'P11',
  says: 'No job was claimed before it was due, and every retry waited as its policy says.',
})
