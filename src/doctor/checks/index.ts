/** All checks, in the order of their findings. */
import type { JobCheck, StoreCheck } from './check.ts'
import { commitsAreFinished } from './commits-are-finished.ts'
import { countersAreRight } from './counters-are-right.ts'
import { damageIsRepaired } from './damage-is-repaired.ts'
import { dueJobsMove } from './due-jobs-move.ts'
import { effectsAreTheirJobs } from './effects-are-their-jobs.ts'
import { effectsMove } from './effects-move.ts'
import {
  attemptsRise,
  changesAreEdges,
  endedJobsRest,
  leasesRanOut,
  oneCommit,
  retriesWereDue,
  waitersWereReleased,
  writesWereFenced,
} from './facts-keep-promises.ts'
import { heldJobsHaveLeases } from './held-jobs-have-leases.ts'
import { idsAreUnique } from './ids-are-unique.ts'
import { inputsAreKept } from './inputs-are-kept.ts'
import { jobsHaveRows } from './jobs-have-rows.ts'
import { keysAreUnique } from './keys-are-unique.ts'
import { leasesOutlastHandlers } from './leases-outlast-handlers.ts'
import { ledgerIsWhole } from './ledger-is-whole.ts'
import { limitsAreAsRecorded } from './limits-are-as-recorded.ts'
import { limitsHold } from './limits-hold.ts'
import { machinesAreKnown } from './machines-are-known.ts'
import { nothingVanished } from './nothing-vanished.ts'
import { noticesAreReceived } from './notices-are-received.ts'
import { oldJobsAreRemoved } from './old-jobs-are-removed.ts'
import { queuesAreAsRecorded } from './queues-are-as-recorded.ts'
import { queuesAreServed } from './queues-are-served.ts'
import { removedKeysAreTaken } from './removed-keys-are-taken.ts'
import { rowIsFold } from './row-is-fold.ts'
import { schedulesAreDeclared } from './schedules-are-declared.ts'
import { schedulesKeepTime } from './schedules-keep-time.ts'
import { schemaIsAsDeclared } from './schema-is-as-declared.ts'
import { sealsHold } from './seals-hold.ts'
import { signalsAreRead } from './signals-are-read.ts'
import { stalledJobs } from './stalled-jobs.ts'
import { statesAreKnown } from './states-are-known.ts'
import { storageIsSound } from './storage-is-sound.ts'
import { ticksAreAccountedFor } from './ticks-are-accounted-for.ts'
import { timesAgree } from './times-agree.ts'
import { waitersAreReleased } from './waiters-are-released.ts'
import { waitingJobsAreReleased } from './waiting-jobs-are-released.ts'
import { workersHaveReported } from './workers-have-reported.ts'
import { writesSurvive } from './writes-survive.ts'

export const JOB_CHECKS: readonly JobCheck[] = [
  jobsHaveRows,
  inputsAreKept,
  statesAreKnown,
  changesAreEdges,
  oneCommit,
  writesWereFenced,
  attemptsRise,
  endedJobsRest,
  leasesRanOut,
  heldJobsHaveLeases,
  ledgerIsWhole,
  rowIsFold,
  damageIsRepaired,
  commitsAreFinished,
  effectsMove,
  retriesWereDue,
  signalsAreRead,
  waitersWereReleased,
  dueJobsMove,
  stalledJobs,
]

/** Store checks whose cost does not grow with the store. */
export const QUICK_CHECKS: readonly StoreCheck[] = [
  schemaIsAsDeclared,
  machinesAreKnown,
  queuesAreServed,
  noticesAreReceived,
  schedulesAreDeclared,
  timesAgree,
  workersHaveReported,
  leasesOutlastHandlers,
  writesSurvive,
  oldJobsAreRemoved,
]

/** Store checks that read the whole store. */
export const FULL_CHECKS: readonly StoreCheck[] = [
  idsAreUnique,
  keysAreUnique,
  removedKeysAreTaken,
  waitingJobsAreReleased,
  effectsAreTheirJobs,
  countersAreRight,
  queuesAreAsRecorded,
  schedulesKeepTime,
  ticksAreAccountedFor,
  limitsAreAsRecorded,
  limitsHold,
  waitersAreReleased,
  sealsHold,
  nothingVanished,
  storageIsSound,
]
