import type { JobCheck } from './check.ts'
import { violationsOf } from './violations.ts'

const facts = violationsOf({
  name: 'attempts-rise',
  promise: 'P5',
  says: 'Attempts only rise, no count is negative, and every budget keeps its bound.',
})

/** In the row and in the ledger. */
export const attemptsRise: JobCheck = {
  ...facts,
  look: (patient, ward) => {
    const { row } = patient.dossier
    const { attempt = 0, failures = 0, crashes = 0, releases = 0 } = row ?? {}
    const counts = { attempt, failures, crashes, releases }
    const isNegative = Object.values(counts).some((count) => count < 0)
    return [
      ...(isNegative ? [{ what: 'a count is negative', evidence: counts }] : []),
      ...facts.look(patient, ward),
    ]
  },
}
