import type { Drift } from '../../stores/contract/examination.ts'
import type { PromiseId } from '../finding.ts'
import type { StoreCheck } from './check.ts'

/** The promise that an object of the schema guards, by a part of its name. */
const GUARDS: readonly (readonly [RegExp, PromiseId])[] = [
  [/one_commit/, 'P3'],
  [/succeeded_is_final/, 'P6'],
  [/live_jobs|jobs_are_never/, 'P1'],
  [/_key$/, 'P12'],
  [/ledger|events|quarantined|logs_only/, 'P8'],
]

export const schemaIsAsDeclared: StoreCheck = {
  name: 'schema-is-as-declared',
  promise: 'P16',
  says: 'Tables, indexes, constraints and triggers are as the migrations made them.',
  look: async ({ store }) => {
    const drift = await store.examination.drift()
    return drift.map(({ kind, name, problem, found }) => ({
      promise: promiseOf({ name }),
      severity: 'error',
      subject: `${kind} ${name}`,
      what: problem === 'missing' ? 'it is missing' : 'it differs from the migrations',
      evidence: found === undefined ? {} : { found },
      remedy: 'restore the schema',
    }))
  },
}

function promiseOf({ name }: Pick<Drift, 'name'>): PromiseId {
  return GUARDS.find(([pattern]) => pattern.test(name))?.[1] ?? 'P16'
}
