import type { Finding } from '../finding.ts'
import { STRAYS_MAX } from '../stray-effects.ts'
import type { StoreCheck } from './check.ts'

/** Receivers recognise a repeated delivery by its key, so the key of an effect must not change. */
export const effectsAreTheirJobs: StoreCheck = {
  name: 'effects-are-their-jobs',
  promise: 'P10',
  says: 'Every effect has the key under which its job declared it.',
  look: async ({ store }) => {
    const strays = await store.examination.strayEffects(STRAYS_MAX)
    return strays.map(({ job_id, job_type, type, name, n, state, mark, declared }) => {
      const [key, own] = [`${job_id}/${name}/${n}`, keyOf(declared)]
      const what =
        key === own
          ? `its type is ${type}, but its job has type ${job_type}`
          : `it was declared as ${own}`
      return {
        promise: 'P10',
        severity: 'error',
        subject: `effect ${key}`,
        what: state === 'delivered' ? `${what}; it is already delivered` : what,
        evidence: { mark, state },
        remedy: 'return the effect to its job',
      } satisfies Omit<Finding, 'check'>
    })
  },
}

function keyOf({ jobId, name, n }: { jobId: string; name: string; n: number }): string {
  return `${jobId}/${name}/${n}`
}
