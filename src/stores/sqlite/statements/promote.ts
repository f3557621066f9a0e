/** Jobs whose time has come. */
import { LANES } from '../../../core/job/lanes.ts'
import type { At } from './at.ts'
import { lockSound } from './sound.ts'

/** A lifecycle that this process does not know is left to one that does. */
const SELECT_DUE = `
  SELECT * FROM pawl_jobs
  WHERE lane = ${LANES.waiting} AND run_at <= ?1 AND machine IN (SELECT value FROM json_each(?2))
  ORDER BY run_at, rid LIMIT ?3`

export const PROMOTE = {
  lockDue: (at: At, limit: number) => lockSound(at, SELECT_DUE, at.now, at.machines.known, limit),
}
