/** The operations of verbs on SQLite, by the files of their statements. */
import type { Enqueued, EnqueueOptions } from '../contract/store.ts'
import { admit } from '../verbs/admit.ts'
import type { Dialect, Performed } from '../verbs/operations.ts'
import { syncDriver } from '../verbs/run.ts'
import { writeChanges } from './apply.ts'
import { typed } from './busy.ts'
import type { Connection } from './connect.ts'
import { atOf, type Shared } from './context.ts'
import { endOf, joinTransaction } from './join.ts'
import { ADMISSIONS } from './statements/admissions.ts'
import type { At } from './statements/at.ts'
import { CLAIM_LIMITED } from './statements/claim-limited.ts'
import { EFFECTS } from './statements/effects.ts'
import { EXAMINE } from './statements/examine.ts'
import { FLOWS } from './statements/flows.ts'
import { GATES } from './statements/gates.ts'
import { GROUPS } from './statements/groups.ts'
import { ISOLATE } from './statements/isolate.ts'
import { JOBS } from './statements/jobs.ts'
import { LIMITS } from './statements/limits.ts'
import { atomically, MACHINES } from './statements/machines.ts'
import { MEND } from './statements/mend.ts'
import { MIGRATE } from './statements/migrate-jobs.ts'
import { NOTICES } from './statements/notices.ts'
import { OUTBOX } from './statements/outbox.ts'
import { PROMOTE } from './statements/promote.ts'
import { PRUNE } from './statements/prune.ts'
import { QUEUES } from './statements/queues.ts'
import { RECOVER } from './statements/recover.ts'
import { RETENTION } from './statements/retention.ts'
import { RUNS } from './statements/runs.ts'
import { createJobs, SCHEDULES } from './statements/schedules.ts'
import { SEALS } from './statements/seals.ts'
import { SHED } from './statements/shed.ts'
import { STRAY_EFFECTS } from './statements/stray-effects.ts'
import { STRICT } from './statements/strict.ts'
import { TOKENS } from './statements/tokens.ts'
import { WAITS } from './statements/waits.ts'
import { WORKERS } from './statements/workers.ts'

const DIALECT: Dialect<At> = {
  ...CLAIM_LIMITED,
  ...ADMISSIONS,
  ...EFFECTS,
  ...EXAMINE,
  ...FLOWS,
  ...GATES,
  ...GROUPS,
  ...ISOLATE,
  ...JOBS,
  ...LIMITS,
  ...MACHINES,
  ...MEND,
  ...MIGRATE,
  ...NOTICES,
  ...OUTBOX,
  ...PROMOTE,
  ...PRUNE,
  ...RETENTION,
  ...RUNS,
  ...SCHEDULES,
  ...SEALS,
  ...QUEUES,
  ...RECOVER,
  ...SHED,
  ...STRAY_EFFECTS,
  ...STRICT,
  ...TOKENS,
  ...WAITS,
  ...WORKERS,
  createJobs: (at, items, requester) =>
    createJobs(
      at,
      items,
      requester,
      (one) => perform(at, (tx) => admit(tx, [one], false))[0] as Enqueued,
    ),
  write: ({ connection }, changes) => writeChanges(connection, changes),
}

/** Runs a verb inside the writer's transaction. */
export const perform = syncDriver(DIALECT)

/** Runs a verb inside a transaction of the user; if it throws, nothing of it remains. */
export function performJoined<T>(
  shared: Shared,
  own: Connection,
  { tx, onJoined }: Pick<EnqueueOptions, 'tx' | 'onJoined'>,
  verb: Performed<T>,
): T {
  const connection = joinTransaction(tx, own)
  return typed(() => {
    shared.clock.refresh(connection)
    const at = atOf(shared, connection, shared.clock.nowInside())
    const done = atomically(connection, () => perform(at, (own) => verb(own, false)))
    onJoined?.(endOf(tx as object, connection))
    return done
  })
}
