/** The operations of verbs on PostgreSQL, by the files of their statements. */
import type { AsyncDialect } from '../verbs/operations.ts'
import { asyncDriver } from '../verbs/run.ts'
import { writeChanges } from './apply.ts'
import type { At } from './statements/at.ts'
import { EFFECTS } from './statements/effects.ts'
import { JOBS } from './statements/jobs.ts'
import { PROMOTE } from './statements/promote.ts'
import { PRUNE } from './statements/prune.ts'
import { RECOVER } from './statements/recover.ts'
import { SHED } from './statements/shed.ts'

const DIALECT: AsyncDialect<At> = {
  ...JOBS,
  ...RECOVER,
  ...PROMOTE,
  ...SHED,
  ...EFFECTS,
  ...PRUNE,
  write: ({ session }, changes) => writeChanges(session, changes),
}

/** Runs a verb inside a transaction. */
export const perform = asyncDriver(DIALECT)
