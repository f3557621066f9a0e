import type { LinkFault } from '../../stores/contract/flows.ts'
import type { Finding } from '../finding.ts'
import type { StoreCheck } from './check.ts'

const FAULTS_MAX = 1000

/**
 * Compares the links of every job that waits for others with its facts and with those jobs. A link
 * that is lost or wrong would start the job early, or never.
 */
export const waitersAreReleased: StoreCheck = {
  name: 'waiters-are-released',
  promise: 'P19',
  says: 'Every job that waits for others waits for what its facts say, and will be released.',
  look: async ({ store }) => (await store.flows.faults(FAULTS_MAX)).map(findingOf),
}

function findingOf({ waiter, what, isLost }: LinkFault): Omit<Finding, 'check'> {
  const base = {
    promise: 'P19',
    severity: 'error',
    subject: `job ${waiter}`,
    what,
    evidence: { waiter },
  } as const
  if (!isLost) return { ...base, remedy: 'restore the links' }
  const advice = `It can never start. End it: pawl job cancel ${waiter} --reason "…".`
  return { ...base, advice }
}
