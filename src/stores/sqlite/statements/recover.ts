/** Jobs whose lease has expired. */
import { LANES } from '../../../core/job/lanes.ts'
import type { At } from './at.ts'
import { lockSound } from './sound.ts'

/**
 * Leaves out flagged jobs, which wait for an operator unless they are to be cancelled, and jobs of
 * lifecycles that this process does not know. Otherwise they could fill every page.
 */
const SELECT_EXPIRED = `
  SELECT * FROM pawl_jobs
  WHERE lane = ${LANES.held} AND lease_until <= ?1
    AND (stalled = 0 OR cancel_asked_at IS NOT NULL)
    AND machine IN (SELECT value FROM json_each(?2))
  ORDER BY lease_until, rid LIMIT ?3`

export const RECOVER = {
  lockExpired: (at: At, limit: number) =>
    lockSound(at, SELECT_EXPIRED, at.now, at.machines.known, limit),
}
