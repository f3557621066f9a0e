/**
 * The contract suite: what every store must pass. It uses the store through its interface alone and
 * asserts with Node's own `assert`, so it runs on any database and under any test runner that has
 * `describe` and `it`. After every test all promises are checked for every job in the store.
 */
import { testEnvironment } from '../../../src/testing/test-environment.ts'
import { debounceCases, rateCases, singletonCases } from './admissions.ts'
import { auditCases } from './audit.ts'
import { batchCases } from './batches.ts'
import { Bench, type Cases, type OpenStore } from './bench.ts'
import { boundedQueueCases } from './bounded-queues.ts'
import { checkStore } from './check.ts'
import { claimCases, claimFactCases } from './claim.ts'
import { boundCases, commitCases, insideCases } from './commit.ts'
import { concurrencyCases, exitCases, limitChangeCases, queueLimitCases } from './concurrency.ts'
import { deadlineCases, snoozeCases } from './deadlines.ts'
import { effectListCases, effectRetryCases, effectTypeCases } from './effects.ts'
import { enqueueCases, keyCases, replaceCases } from './enqueue.ts'
import { definitionCases, migrationCases, touchCases } from './evolution.ts'
import { fastPathCases } from './fast-paths.ts'
import { fenceCases } from './fences.ts'
import { dependencyCases, flowCases, flowReadingCases } from './flows.ts'
import { closeCases, groupCases } from './group.ts'
import { hostileCases } from './hostile.ts'
import { invokeCases } from './invokes.ts'
import { lifecycleCases } from './lifecycles.ts'
import { limitCases } from './limits.ts'
import { noticeCases } from './notices.ts'
import { raceCases, repeatedIdCases, staleReportCases } from './one-call.ts'
import { cancelCases, operatorCases } from './operators.ts'
import { outboxCases } from './outbox.ts'
import { queueRecordCases } from './queue-records.ts'
import { queueCases, queueListCases, wakeCases, workerCases } from './queues-and-workers.ts'
import { listCases, readingCases } from './reading.ts'
import { promoteCases, recoverCases } from './recover-and-promote.ts'
import { retentionCases } from './retention.ts'
import { rotationCases } from './rotation.ts'
import {
  scheduleCatchUpCases,
  scheduleFireCases,
  scheduleOperatorCases,
  scheduleOverlapCases,
  schedulePutCases,
} from './schedules.ts'
import { sealCases } from './seals.ts'
import { heartbeatCases, settleCases } from './settle.ts'
import { stepCases } from './steps.ts'
import { strictCases } from './strict-groups.ts'
import { keptKeyCases, sweepCases } from './sweep.ts'
import { throttleCases } from './throttles.ts'
import { tokenCases } from './tokens.ts'
import { traceCases } from './traces.ts'
import { transactionCases } from './transactions.ts'
import { earlierWaitCases, signalCases, waitCases } from './waits.ts'

export type { OpenStore, OwnTable } from './bench.ts'

/** What the suite needs: a test runner, and a way to a fresh store. */
export interface StoreContractOptions {
  readonly describe: (name: string, body: () => void) => unknown
  readonly it: (name: string, body: () => Promise<void>) => unknown
  readonly open: OpenStore
}

const THEMES: Readonly<Record<string, Cases>> = {
  enqueue: enqueueCases,
  keys: keyCases,
  'replaced jobs': replaceCases,
  'rate limits': rateCases,
  'debounced jobs': debounceCases,
  singletons: singletonCases,
  claim: claimCases,
  'facts of a claim': claimFactCases,
  'concurrency limits': concurrencyCases,
  'ways out of a limit': exitCases,
  'changes of limits': limitChangeCases,
  'limits of queues': queueLimitCases,
  'strict groups': strictCases,
  'groups that take turns': rotationCases,
  throttles: throttleCases,
  settle: settleCases,
  'facts of fast paths': fastPathCases,
  heartbeat: heartbeatCases,
  fences: fenceCases,
  deadlines: deadlineCases,
  'snoozed jobs': snoozeCases,
  'paths of the lifecycles': lifecycleCases,
  recover: recoverCases,
  promote: promoteCases,
  operators: operatorCases,
  cancel: cancelCases,
  commit: commitCases,
  'time of a commit': boundCases,
  'inside a commit': insideCases,
  transactions: transactionCases,
  outbox: outboxCases,
  'types of effects': effectTypeCases,
  'lists of effects': effectListCases,
  'retried effects': effectRetryCases,
  'reports that come too late': staleReportCases,
  'expected versions of jobs': raceCases,
  'repeated ids in one call': repeatedIdCases,
  notices: noticeCases,
  steps: stepCases,
  signals: signalCases,
  waits: waitCases,
  flows: flowCases,
  dependencies: dependencyCases,
  'lists of flows': flowReadingCases,
  batches: batchCases,
  children: invokeCases,
  queues: { ...queueCases, ...queueListCases },
  'records of queues': queueRecordCases,
  'bounded queues': boundedQueueCases,
  workers: workerCases,
  'wake-ups': wakeCases,
  reading: readingCases,
  lists: listCases,
  traces: traceCases,
  audit: auditCases,
  retention: retentionCases,
  'steps of retention': sweepCases,
  'keys of removed jobs': keptKeyCases,
  seals: sealCases,
  schedules: { ...schedulePutCases, ...scheduleFireCases },
  'late ticks': scheduleCatchUpCases,
  'overlapping ticks': scheduleOverlapCases,
  'operators of schedules': scheduleOperatorCases,
  tokens: tokenCases,
  limits: limitCases,
  'group commit': groupCases,
  close: closeCases,
  'versions of lifecycles': {
    ...touchCases,
    ...migrationCases,
    ...definitionCases,
    ...earlierWaitCases,
  },
  'hostile values': hostileCases,
}

/** Declares the tests of the contract for one store. */
export function storeContract({ describe, it, open }: StoreContractOptions): void {
  for (const [theme, cases] of Object.entries(THEMES)) {
    describe(theme, () => {
      for (const [name, run] of Object.entries(cases)) {
        it(name, async () => {
          const environment = testEnvironment()
          const bench = new Bench(environment, await open(environment))
          try {
            // A store that only one process can open has no releases side by side.
            if (theme === 'versions of lifecycles' && bench.reopen === undefined) return
            await run(bench)
            if (theme !== 'close') await checkStore(bench.store)
          } finally {
            if (theme !== 'close') await bench.store.close()
          }
        })
      }
    })
  }
}
