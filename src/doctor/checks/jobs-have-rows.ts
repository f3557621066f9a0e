import type { JobCheck } from './check.ts'

/** A job whose facts are there and whose row is not was accepted, and would never run. */
export const jobsHaveRows: JobCheck = {
  name: 'jobs-have-rows',
  promise: 'P1',
  says: 'Every job of which there are facts or effects has a row.',
  look: ({ dossier: { row, facts, effects } }) =>
    row === null
      ? [
          {
            what: 'there is no row of it',
            evidence: { facts: facts.length, effects: effects.length },
          },
        ]
      : [],
}
