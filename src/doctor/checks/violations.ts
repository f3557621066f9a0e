/** Checks that ask the predicates of the core: the same that the tests and the simulator ask. */
import type { JobCheck } from './check.ts'

/** The violations of one promise in the facts of a job. */
export function violationsOf({
  advice,
  ...check
}: Omit<JobCheck, 'look'> & { readonly advice?: string }): JobCheck {
  return {
    ...check,
    look: ({ violations, facts }) =>
      violations
        .filter(({ promise }) => promise === check.promise)
        .map(({ seq, what }) => ({
          what: `fact ${seq}: ${what}`,
          evidence: { fact: facts.find((fact) => fact.seq === seq) },
          ...(advice !== undefined && { advice }),
        })),
  }
}
