/**
 * Recovers jobs whose lease has expired. Every worker does this all the time, for a bounded number
 * of jobs at once. A row is locked, checked and written in one transaction, so that a holder who
 * renewed or finished meanwhile is never overwritten.
 */
import type { Command } from '../../core/job/commands.ts'
import { ENGINE } from '../contract/requester.ts'
import type { Recovered } from '../contract/store.ts'
import { Changes } from './changes.ts'
import type { Tx, Verb } from './operations.ts'
import type { Read } from './reading.ts'

/** Recovers up to `limit` jobs. */
export function* recover(tx: Tx, limit: number): Verb<Recovered[]> {
  // Every worker calls this all the time, so claims need not look for new versions.
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

/** A request to cancel a job stays valid if its holder dies. */
function recoveryOf({ job, cancelAskedAt }: Read, claim: string): Command {
  const fence = { attempt: job.attempt, claim }
  return cancelAskedAt === null ? { kind: 'expire', fence } : { kind: 'cancel' }
}
