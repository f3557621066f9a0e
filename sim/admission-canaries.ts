/** Planted bugs of rate limits, debounced jobs and singletons; see `canaries.ts`. */
import type { Canary } from './planted.ts'

const ADMIT = 'stores/verbs/admit.js'
const RULES = 'core/admission.js'

export const ADMISSION: readonly Canary[] = [
  {
    name: 'a debounced job keeps its first input',
    promise: 'P1',
    changes: [
      {
        file: ADMIT,
        find: "const commands = [{ kind: 'replace' }, { kind: 'reschedule', runAt }];",
        put: "const commands = [{ kind: 'reschedule', runAt }];",
      },
    ],
  },
  {
    name: 'a singleton admits a second job',
    promise: 'P13',
    changes: [{ file: RULES, find: 'if (!isLive(job))', put: 'if (true)' }],
  },
  {
    name: 'the windows of a rate limit have fixed edges',
    promise: 'P13',
    changes: [
      {
        file: RULES,
        find: 'from + sliceMs - 1 + rule.periodMs >= now)',
        put: 'from >= now - (now % rule.periodMs))',
      },
    ],
  },
  {
    name: 'a job is created, and its row of admission is not written',
    promise: 'P13',
    changes: [
      {
        file: ADMIT,
        find: 'yield* tx.saveAdmissions(admitting.changed);',
        put: 'yield* tx.saveAdmissions([]);',
      },
    ],
  },
  {
    name: 'a job that waits for another one is never released',
    promise: 'P15',
    changes: [{ file: 'stores/verbs/admission-tables.js', find: 'if (!isDue)', put: 'if (true)' }],
  },
]
