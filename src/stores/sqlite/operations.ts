/** The operations of verbs on SQLite, by the files of their statements. */
import type { Dialect } from '../verbs/operations.ts'
import { syncDriver } from '../verbs/run.ts'
import { writeChanges } from './apply.ts'
import type { At } from './statements/at.ts'
import { EFFECTS } from './statements/effects.ts'
import { JOBS } from './statements/jobs.ts'
import { PROMOTE } from './statements/promote.ts'
import { PRUNE } from './statements/prune.ts'
import { RECOVER } from './statements/recover.ts'
import { SHED } from './statements/shed.ts'

const DIALECT: Dialect<At> = {
  ...JOBS,
  ...RECOVER,
  ...PROMOTE,
  ...SHED,
  ...EFFECTS,
  ...PRUNE,
  write: ({ connection }, changes) => writeChanges(connection, changes),
}

/** Runs a verb inside the writer's transaction. */
export const perform = syncDriver(DIALECT)
