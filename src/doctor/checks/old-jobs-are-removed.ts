import type { StoreCheck } from './check.ts'

const DAY_MS = 86_400_000
const OLD_DAYS = 30
/** A worker that looks after retention notes it at least once a day. */
const ACTIVE_MS = 2 * DAY_MS
const BOUND = 10_000

/** A store without retention grows until its disk is full. */
export const oldJobsAreRemoved: StoreCheck = {
  name: 'old-jobs-are-removed',
  promise: 'P15',
  says: `If jobs ended more than ${OLD_DAYS} days ago, a worker looks after retention.`,
  look: async ({ store, now }) => {
    const looked = await store.retention.lastLook()
    if (looked !== undefined && looked > now - ACTIVE_MS) return []
    const before = Math.max(0, now - OLD_DAYS * DAY_MS)
    const jobs = await store.retention.countEnded(before, BOUND)
    if (jobs === 0) return []
    const count = jobs === BOUND ? `${BOUND} or more` : String(jobs)
    return [
      {
        promise: 'P15',
        severity: 'notice',
        subject: 'retention',
        what: `${count} jobs ended more than ${OLD_DAYS} days ago, and no worker removes them`,
        evidence: { jobs, bound: BOUND, before },
        advice:
          'To keep the store small, set the option `retention` of createPawl, or run: ' +
          'pawl retention run --succeeded 30d --dry-run --reason "…"',
      },
    ]
  },
}
