import type { StoreCheck } from './check.ts'

const LIMIT = 1000

/** Retention keeps keys of removed jobs, so that a key is used once also after its job is gone. */
export const removedKeysAreTaken: StoreCheck = {
  name: 'removed-keys-are-taken',
  promise: 'P12',
  says: 'No job has a key that was kept for a removed job when it was created.',
  look: async ({ store }) => {
    const rivals = await store.retention.rivals(LIMIT)
    return rivals.map(({ jobId, removed }) => ({
      promise: 'P12',
      severity: 'error',
      subject: `job ${jobId}`,
      what: `its key belongs to job ${removed.id}, which has ended and was removed`,
      evidence: { jobId, ...removed },
      advice: `Compare the two jobs. If both ran, the work was done twice: pawl job show ${jobId}`,
    }))
  },
}
