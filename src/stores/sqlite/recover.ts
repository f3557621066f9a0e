/**
 * Takes back jobs whose lease has expired: any worker does this, all the time, a bounded number at
 * once. The row is read, judged and written in one transaction, so that a holder who renewed or
 * finished in between is never overwritten.
 */

import type { Command } from '../../core/job/commands.ts'
import { LANES } from '../../core/job/lanes.ts'
import { ENGINE } from '../asker.ts'
import type { Recovered } from '../store.ts'
import { answer } from './answer.ts'
import type { Connection } from './connect.ts'
import { type NumberedRow, type Shared, toSound } from './context.ts'
import { refreshMachines } from './machines.ts'
import { parkOldNotices } from './notices.ts'
import { findWaitingRetries } from './retries.ts'

/**
 * Jobs that were flagged already wait for an operator, unless they are to be cancelled, and those
 * of lifecycles that this process does not know for one that does; neither may fill the page for
 * ever.
 */
const SELECT_EXPIRED = `
  SELECT * FROM pawl_jobs
  WHERE lane = ${LANES.held} AND lease_until <= ?1 AND (stalled = 0 OR cancel_asked_at IS NOT NULL)
    AND machine IN (SELECT value FROM json_each(?2))
  ORDER BY lease_until, rid LIMIT ?3`

/** Recovers up to `limit` jobs. */
export function recover(
  shared: Shared,
  connection: Connection,
  now: number,
  limit: number,
): Recovered[] {
  // Every worker comes here all the time, and no claim has to pay for the look.
  refreshMachines(connection, shared.machines)
  const answers: Recovered[] = []
  type Row = NumberedRow & { readonly cancel_asked_at: number | null }
  const rows = connection.all<Row>(SELECT_EXPIRED, now, shared.machines.known, limit)
  const retries = rows.length === 0 ? undefined : findWaitingRetries(connection, now)
  for (const row of rows) {
    const found = toSound(shared, row)
    if (found === undefined || found.job.execution === null) continue
    const read = { ...found, retriesAhead: retries?.next(found.job.queue) ?? 0 }
    const fence = { attempt: read.job.attempt, claim: found.job.execution.claim }
    // A wish to cancel outlives the holder that was asked.
    const command: Command =
      row.cancel_asked_at === null ? { kind: 'expire', fence } : { kind: 'cancel' }
    const holder = found.job.execution.worker
    answers.push({ ...answer(shared, connection, now, read, command, ENGINE), holder })
  }
  parkOldNotices(connection, now)
  return answers
}
