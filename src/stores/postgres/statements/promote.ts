/** Jobs whose time has come. */
import { LANES } from '../../../core/job/lanes.ts'
import { statement } from '../connect.ts'
import type { At } from './at.ts'
import { lockSound } from './sound.ts'

/** A lifecycle that this process does not know is left to one that does. */
const LOCK_DUE = statement(
  (s) => `
  SELECT * FROM ${s}.jobs
  WHERE lane = ${LANES.waiting} AND run_at <= $1 AND machine = ANY ($2::int[])
  ORDER BY run_at, id LIMIT $3 FOR UPDATE SKIP LOCKED`,
)

export const PROMOTE = {
  lockDue: (at: At, limit: number) => lockSound(at, LOCK_DUE, at.now, at.machines.known, limit),
}
