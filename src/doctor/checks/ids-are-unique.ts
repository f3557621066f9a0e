import type { StoreCheck } from './check.ts'

/** Constraints prevent this; the check is for a store that has lost them. */
export const idsAreUnique: StoreCheck = {
  name: 'ids-are-unique',
  promise: 'P2',
  says: 'No two jobs have the same id.',
  look: async ({ duplicates }) => {
    const found = await duplicates()
    return found
      .filter(({ key }) => key === undefined)
      .map(({ id }) => ({
        promise: 'P2',
        severity: 'error',
        subject: `job ${id}`,
        what: 'several rows have its id',
        evidence: {},
        remedy: 'take the contradicting rows aside',
      }))
  },
}
