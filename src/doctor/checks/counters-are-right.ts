import type { StoreCheck } from './check.ts'

/** The roll-up of ended jobs is written with the jobs; rows that vanished are seen here. */
export const countersAreRight: StoreCheck = {
  name: 'counters-are-right',
  promise: 'P9',
  says: 'As many jobs have ended in each queue and state as were counted.',
  look: async ({ store }) => {
    const wrong = await store.examination.counters()
    return wrong.map(({ queue, state, counted, actual }) => ({
      promise: 'P9',
      severity: 'error',
      subject: `queue ${queue}`,
      what: `${counted} jobs were counted that ended in ${state}, and there are ${actual}`,
      evidence: { state, counted, actual },
      remedy: 'rebuild the counters',
    }))
  },
}
