/**
 * Takes back jobs whose lease has expired: every worker does this, all the time, a bounded number
 * at once. A row is locked, judged and written in one transaction, so that a holder who renewed or
 * finished in between is never overwritten.
 */
import type { Command } from '../../core/job/commands.ts'
import { ENGINE } from '../asker.ts'
import type { Recovered } from '../store.ts'
import { Changes } from './changes.ts'
import type { Tx, Verb } from './operations.ts'
import type { Read } from './reading.ts'

/** Recovers up to `limit` jobs. */
export function* recover(tx: Tx, limit: number): Verb<Recovered[]> {
  // Every worker comes here all the time, and no claim has to pay for the look.
  yield* tx.refreshMachines()
  const expired = yield* tx.lockExpired(limit)
  const retries = expired.length === 0 ? undefined : yield* tx.waitingRetries()
  const changes = new Changes(tx)
  const answers: Recovered[] = []
  for (const read of expired) {
    const { execution } = read.job
    if (execution === null) continue
    read.retriesAhead = retries?.next(read.job.queue) ?? 0
    const command = recoveryOf(read, execution.claim)
    answers.push({ ...changes.answer(read, command, ENGINE), holder: execution.worker })
  }
  yield* tx.write(changes)
  yield* tx.parkOldNotices()
  return answers
}

/** The request to cancel a job outlives the holder that was asked. */
function recoveryOf({ job, cancelAskedAt }: Read, claim: string): Command {
  const fence = { attempt: job.attempt, claim }
  return cancelAskedAt === null ? { kind: 'expire', fence } : { kind: 'cancel' }
}
