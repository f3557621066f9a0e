/** Jobs whose lease has expired. */
import { LANES } from '../../../core/job/lanes.ts'
import { statement } from '../connect.ts'
import { parkOldNotices } from '../notices.ts'
import type { At } from './at.ts'
import { lockSound } from './sound.ts'

/**
 * Jobs that were flagged already wait for an operator, unless they are to be cancelled, and those
 * of lifecycles that this process does not know for one that does; neither may fill the page for
 * ever.
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
  parkOldNotices: ({ session, now }: At) => parkOldNotices(session, now),
}
