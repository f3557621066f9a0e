import type { StoreCheck } from './check.ts'

/** Counters are written with the jobs, so they show rows that were deleted by other programs. */
export const countersAreRight: StoreCheck = {
  name: 'counters-are-right',
  promise: 'P9',
  says: 'The counters of ended jobs agree with the jobs, for each queue and state.',
  look: async ({ store }) => {
    const wrong = await store.examination.counters()
    return wrong.map(({ queue, state, counted, actual }) => ({
      promise: 'P9',
      severity: 'error',
      subject: `queue ${queue}`,
      what: `${counted} jobs in ${state} are counted, but ${actual} exist`,
      evidence: { state, counted, actual },
      remedy: 'rebuild the counters',
    }))
  },
}
