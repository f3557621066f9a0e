import { outcomeOf } from '../../core/lifecycles/lifecycle.ts'
import type { JobCheck, Sighting } from './check.ts'

export const statesAreKnown: JobCheck = {
  name: 'states-are-known',
  promise: 'P2',
  says: 'Every job is in a state of a lifecycle and version that this process knows.',
  look: ({ stored, job, rowFault, lifecycle }) => {
    const { row, machine, facts } = stored
    if (row === null) return []
    if (rowFault !== undefined) return [{ what: `the row cannot be read: ${rowFault}` }]
    if (lifecycle === undefined) return [unknown(machine ?? undefined, facts[0]?.version)]
    if (job === null) return []
    const role = lifecycle.roles.get(job.state)
    if (role === undefined) {
      return [{ what: `${lifecycle.name} has no state "${job.state}"`, evidence: { row: job } }]
    }
    const outcome = outcomeOf(role) ?? null
    return outcome === job.outcome
      ? []
      : [{ what: `the outcome of ${job.state} is ${outcome}, not ${job.outcome}` }]
  },
}

/** Rule G9: jobs of unknown lifecycles are not changed. */
function unknown(
  machine: { name: string; version: number } | undefined,
  version?: number,
): Sighting {
  const name = machine === undefined ? 'its lifecycle' : `${machine.name} v${machine.version}`
  return {
    what: `${name} is not known to this process`,
    severity: 'warning',
    evidence: { factVersion: version },
    advice:
      'Run the doctor with the job file that defines it: --jobs FILE. If its code is lost, ' +
      'define a later version with a mapping of its states ("from").',
  }
}
