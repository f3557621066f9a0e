import type { StoreCheck } from './check.ts'

/** One key, one job: constraints exclude anything else, unless they were lost. */
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
