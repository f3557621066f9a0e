import { ADMISSION_KINDS, type AdmissionName } from '../../stores/contract/admissions.ts'
import type { Store } from '../../stores/contract/store.ts'
import type { Finding } from '../finding.ts'
import type { StoreCheck } from './check.ts'

const PAGE = 500

/** A job of a singleton that waits for another one is released by workers. */
export const waitingJobsAreReleased: StoreCheck = {
  name: 'waiting-jobs-are-released',
  promise: 'P15',
  says: 'No job of a singleton waits for a job that has ended.',
  look: async ({ store, now, thresholds }) => {
    const findings: Omit<Finding, 'check'>[] = []
    let after: AdmissionName | undefined
    for (;;) {
      const rows = await store.admissions.list(after, PAGE)
      const late = rows.filter(({ kind, next, look_at: lookAt }) => {
        const isLate = lookAt < now - thresholds.dueMs
        return kind === ADMISSION_KINDS.singleton && next !== null && isLate
      })
      for (const { type, key, job, next } of late) {
        if (await isWaitedFor(store, job)) continue
        findings.push({
          promise: 'P15',
          severity: 'warning',
          subject: `job ${next}`,
          what: `it waits for job ${job}, which does not hold it back any more`,
          evidence: { type, key, job, next },
          advice: 'A worker releases it within seconds. Check that one runs: pawl worker list',
        })
      }
      after = rows[rows.length - 1]
      if (rows.length < PAGE) return findings
    }
  },
}

async function isWaitedFor(store: Store, id: string | null): Promise<boolean> {
  const job = id === null ? undefined : await store.get(id)
  return job !== undefined && job.outcome === null && job.blockedReason === null
}
