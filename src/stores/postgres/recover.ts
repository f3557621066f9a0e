/**
 * Takes back jobs whose lease has expired: any worker does this, all the time, a bounded number at
 * once. The row is locked, judged and written in one transaction, so that a holder who renewed or
 * finished in between is never overwritten. What another process is recovering is left to it.
 */

import type { Command } from '../../core/job/commands.ts'
import { LANES } from '../../core/job/lanes.ts'
import { ENGINE } from '../asker.ts'
import type { Recovered } from '../store.ts'
import { answer } from './answer.ts'
import { Changes } from './apply.ts'
import { type Session, statement } from './connect.ts'
import { type LockedRow, type Shared, toSound } from './context.ts'
import { refreshMachines } from './machines.ts'
import { parkOldNotices } from './notices.ts'
import { findWaitingRetries } from './retries.ts'

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

/** Recovers up to `limit` jobs. */
export async function recover(
  shared: Shared,
  session: Session,
  now: number,
  limit: number,
): Promise<Recovered[]> {
  // Every worker comes here all the time, and no claim has to pay for the look.
  await refreshMachines(session, shared.machines)
  const rows = await session.query<LockedRow>(LOCK_EXPIRED, [now, shared.machines.known, limit])
  const retries = rows.length === 0 ? undefined : await findWaitingRetries(session, now)
  const changes = new Changes()
  const answers: Recovered[] = []
  for (const row of rows) {
    const read = toSound(shared, row)
    if (read === undefined || read.job.execution === null) continue
    read.retriesAhead = retries?.next(read.job.queue) ?? 0
    const fence = { attempt: read.job.attempt, claim: read.job.execution.claim }
    // A wish to cancel outlives the holder that was asked.
    const command: Command =
      read.cancelAskedAt === null ? { kind: 'expire', fence } : { kind: 'cancel' }
    const holder = read.job.execution.worker
    answers.push({ ...answer(shared, changes, now, read, command, ENGINE), holder })
  }
  await changes.write(session)
  await parkOldNotices(session, now)
  return answers
}
