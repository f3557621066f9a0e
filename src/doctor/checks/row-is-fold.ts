import { rowFaults } from '../row-faults.ts'
import type { JobCheck } from './check.ts'

export const rowIsFold: JobCheck = {
  name: 'row-is-fold',
  promise: 'P9',
  says: 'Every row agrees with its facts and is in the right lane.',
  look: (examined, { now }) =>
    examined.stored.row === null || examined.isTruncated
      ? []
      : rowFaults(examined, now).map((what) => ({
          what,
          evidence: { row: examined.job, facts: examined.folded },
        })),
}
