/** Every check there is, in the order in which findings are told. */
import { attemptsRise } from './attempts-rise.ts'
import { changesAreEdges } from './changes-are-edges.ts'
import type { JobCheck, StoreCheck } from './check.ts'
import { commitsAreFinished } from './commits-are-finished.ts'
import { countersAreRight } from './counters-are-right.ts'
import { damageIsRepaired } from './damage-is-repaired.ts'
import { dueJobsMove } from './due-jobs-move.ts'
import { effectsAreTheirJobs } from './effects-are-their-jobs.ts'
import { effectsMove } from './effects-move.ts'
import { endedJobsRest } from './ended-jobs-rest.ts'
import { heldJobsHaveLeases } from './held-jobs-have-leases.ts'
import { idsAreUnique } from './ids-are-unique.ts'
import { inputsAreKept } from './inputs-are-kept.ts'
import { jobsHaveRows } from './jobs-have-rows.ts'
import { keysAreUnique } from './keys-are-unique.ts'
import { leasesRanOut } from './leases-ran-out.ts'
import { ledgerIsWhole } from './ledger-is-whole.ts'
import { machinesAreKnown } from './machines-are-known.ts'
import { nothingVanished } from './nothing-vanished.ts'
import { noticesAreReceived } from './notices-are-received.ts'
import { oneCommit } from './one-commit.ts'
import { queuesAreAsRecorded } from './queues-are-as-recorded.ts'
import { queuesAreServed } from './queues-are-served.ts'
import { retriesWereDue } from './retries-were-due.ts'
import { rowIsFold } from './row-is-fold.ts'
import { schemaIsAsDeclared } from './schema-is-as-declared.ts'
import { sealsHold } from './seals-hold.ts'
import { stalledJobs } from './stalled-jobs.ts'
import { statesAreKnown } from './states-are-known.ts'
import { storageIsSound } from './storage-is-sound.ts'
import { timesAgree } from './times-agree.ts'
import { workersHaveReported } from './workers-have-reported.ts'
import { writesSurvive } from './writes-survive.ts'
import { writesWereFenced } from './writes-were-fenced.ts'

/** Checks of one job at a time. */
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
  dueJobsMove,
  stalledJobs,
]

/** Checks of the store that cost next to nothing, however much is in it. */
export const QUICK_CHECKS: readonly StoreCheck[] = [
  schemaIsAsDeclared,
  machinesAreKnown,
  queuesAreServed,
  noticesAreReceived,
  timesAgree,
  workersHaveReported,
  writesSurvive,
]

/** Checks of the store that read all of it. */
export const FULL_CHECKS: readonly StoreCheck[] = [
  idsAreUnique,
  keysAreUnique,
  effectsAreTheirJobs,
  countersAreRight,
  queuesAreAsRecorded,
  sealsHold,
  nothingVanished,
  storageIsSound,
]
