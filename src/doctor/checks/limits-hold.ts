import type { GateFault } from '../../stores/contract/limits.ts'
import type { Finding } from '../finding.ts'
import type { StoreCheck } from './check.ts'

const FAULTS_MAX = 1000

/**
 * Compares every gate of a limit with the jobs that run and wait. A count that is too high keeps
 * jobs blocked without end; one that is too low lets too many run.
 */
export const limitsHold: StoreCheck = {
  name: 'limits-hold',
  promise: 'P13',
  says: 'No more jobs run than limits allow, and none waits while there is room.',
  look: async ({ store }) => (await store.limits.faults(FAULTS_MAX)).map(findingOf),
}

function findingOf({ kind, gate, used, counted, max }: GateFault): Omit<Finding, 'check'> {
  const base = {
    promise: kind === 'stranded' ? ('P15' as const) : ('P13' as const),
    severity: 'error' as const,
    subject: `limit ${gate}`,
    evidence: { gate, used, counted },
    remedy: 'recount the limit' as const,
  }
  switch (kind) {
    case 'count':
      return { ...base, what: `${used} jobs are counted, but ${counted} run` }
    case 'stranded':
      return { ...base, what: 'it blocks jobs, and no worker will look at them' }
    case 'values':
      return { ...base, what: 'its row has a time or a number that cannot be' }
    case 'ungated':
      return { ...base, what: 'claims of its queue do not look at it' }
    case 'exceeded': {
      const { remedy: _, ...rest } = base
      const what = `${counted} jobs run, and at most ${max} may`
      const advice = 'No further job is claimed until fewer run; cancel some, or raise the limit.'
      return { ...rest, what, evidence: { gate, used, counted, max }, advice }
    }
  }
}
