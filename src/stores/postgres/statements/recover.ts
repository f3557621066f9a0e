/** Jobs whose lease has expired. */
import { LANES } from '../../../core/job/lanes.ts'
import { statement } from '../connect.ts'
import type { At } from './at.ts'
import { lockSound } from './sound.ts'

/**
 * Leaves out flagged jobs, which wait for an operator unless they are to be cancelled, and jobs of
 * lifecycles that this process does not know. Otherwise they could fill every page.
 */
const LOCK_EXPIRED = statement(
  (s) => `
  SELECT * FROM ${s}.jobs
  WHERE lane = ${LANES.held} AND lease_until <= $1 AND (stalled = 0 OR cancel_asked_at IS NOT NULL)
    AND machine = ANY ($2::int[])
  ORDER BY lease_until, id LIMIT $3 FOR UPDATE SKIP LOCKED`,
)

export const RECOVER = {
  lockExpired: (at: At, limit: number) =>
    lockSound(at, LOCK_EXPIRED, at.now, at.machines.known, limit),
}
