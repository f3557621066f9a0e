/** Checks of the facts of a job, by the predicates of the core, as tests and simulator do. */
import type { JobCheck } from './check.ts'

/** Makes a check that reports the violations of one promise in the facts of a job. */
function violationsOf({
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

export const changesAreEdges = violationsOf({
  name: 'changes-are-edges',
  promise: 'P2',
  says: 'Every change of a job is an edge of its lifecycle, or forced or repaired by name.',
})

/** A second commit repeated its effects; no repair can undo that. */
export const oneCommit = violationsOf({
  name: 'one-commit',
  promise: 'P3',
  says: 'At most one execution of a job was committed.',
  advice: 'Compare the results of both commits: both changed your own tables.',
})

export const writesWereFenced = violationsOf({
  name: 'writes-were-fenced',
  promise: 'P4',
  says: 'Every write of a worker has the claim of its attempt and a valid lease.',
})

const attemptFacts = violationsOf({
  name: 'attempts-rise',
  promise: 'P5',
  says: 'Attempts only rise, no count is negative, and every budget keeps its bound.',
})

/** Checks the row as well as the ledger. */
export const attemptsRise: JobCheck = {
  ...attemptFacts,
  look: (examined, context) => {
    const { row } = examined.stored
    const { attempt = 0, failures = 0, crashes = 0, releases = 0 } = row ?? {}
    const counts = { attempt, failures, crashes, releases }
    const isNegative = Object.values(counts).some((count) => count < 0)
    return [
      ...(isNegative ? [{ what: 'a count is negative', evidence: counts }] : []),
      ...attemptFacts.look(examined, context),
    ]
  },
}

export const endedJobsRest = violationsOf({
  name: 'ended-jobs-rest',
  promise: 'P6',
  says: 'No job changed after it had ended, except by an operator edge.',
})

export const leasesRanOut = violationsOf({
  name: 'leases-ran-out',
  promise: 'P7',
  says: 'No lease was recovered before it had expired.',
})

export const retriesWereDue = violationsOf({
  name: 'retries-were-due',
  promise: 'P11',
  says: 'No job was claimed before it was due, and every retry waited as its policy says.',
})

export const signalFacts = violationsOf({
  name: 'signals-are-read',
  promise: 'P18',
  says: 'Every signal was received once and in order, or is reported as unread.',
})

export const waitersWereReleased = violationsOf({
  name: 'waiters-were-released',
  promise: 'P19',
  says: 'No worker took a job while it waited for others.',
})
