import type { StoreCheck } from './check.ts'

/** Constraints prevent this; the check is for a store that has lost them. */
export const keysAreUnique: StoreCheck = {
  name: 'keys-are-unique',
  promise: 'P12',
  says: 'No two jobs of a type have the same key.',
  look: async ({ duplicates }) => {
    const found = await duplicates()
    return found
      .filter(({ key }) => key !== undefined)
      .map(({ id, type, key }) => ({
        promise: 'P12',
        severity: 'error',
        subject: `job ${id}`,
        what: `several jobs of type ${type} have the key "${key}"`,
        evidence: { type, key },
        remedy: 'give the key up',
      }))
  },
}
