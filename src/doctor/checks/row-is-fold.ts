import { rowFaults } from '../row-faults.ts'
import type { JobCheck } from './check.ts'

/** The row is what its facts say, and the scheduler sees it where it is. */
export const rowIsFold: JobCheck = {
  name: 'row-is-fold',
  promise: 'P9',
  says: 'Every row is what its facts say, and stands in the lane where it belongs.',
  look: (patient, { now }) =>
    patient.dossier.row === null || patient.isTruncated
      ? []
      : rowFaults(patient, now).map((what) => ({
          what,
          evidence: { row: patient.job, facts: patient.folded },
        })),
}
