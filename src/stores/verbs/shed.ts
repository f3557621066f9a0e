/**
 * Ends jobs that wait past their deadline (`src/core/job/overdue.ts`), and jobs that their queues
 * have no time or no room for (`../shedding.ts`).
 */

import { enteredAt } from '../../core/job/job.ts'
import { overdueFacts } from '../../core/job/overdue.ts'
import { contextOf, ENGINE } from '../contract/requester.ts'
import type { Answer, Requester } from '../contract/store.ts'
import { shedCommand, shedder } from '../shedding.ts'
import { Changes } from './changes.ts'
import type { Tx, Verb } from './operations.ts'
import type { Read } from './reading.ts'

/** Ends up to `limit` jobs. */
export function* shed(tx: Tx, limit: number): Verb<Answer[]> {
  const answers: Answer[] = yield* endOverdue(tx, limit)
  for (const { name, maxDepth, maxWaitMs } of yield* tx.limitedQueues()) {
    if (maxWaitMs !== null && answers.length < limit) {
      const late = yield* tx.lockLate(name, tx.now - maxWaitMs, limit - answers.length)
      answers.push(...(yield* end(tx, late, shedder(name, 'maxWait'))))
    }
    if (maxDepth !== null && answers.length < limit) {
      const left = limit - answers.length
      const surplus = (yield* tx.countReady(name, maxDepth + left)) - maxDepth
      if (surplus <= 0) continue
      const last = yield* tx.lockSurplus(name, surplus)
      answers.push(...(yield* end(tx, last, shedder(name, 'maxDepth'))))
    }
  }
  return answers
}

/** A deadline ends a job for good, so it must be that of the facts; the doctor repairs others. */
function* endOverdue(tx: Tx, limit: number): Verb<Answer[]> {
  const reads = (yield* tx.lockOverdue(limit)).filter(({ route }) => route === undefined)
  if (reads.length === 0) return []
  const known = yield* tx.deadlinesByFacts(reads)
  const changes = new Changes(tx)
  const answers: Answer[] = []
  for (const [i, read] of reads.entries()) {
    if (known[i] !== read.job.deadlineAt) continue
    const { environment, now } = tx
    const context = contextOf(environment, ENGINE, now)
    const since = enteredAt(read.job)
    const facts = overdueFacts(read.lifecycle, read.job, context, environment.ids.next())
    for (const fact of facts) changes.add(read, fact, null)
    const fact = facts.at(-1)
    if (fact !== undefined) answers.push({ kind: 'done', job: read.job, fact, since })
  }
  yield* tx.write(changes)
  return answers
}

/** Written at once, so that the jobs are no longer counted as ready. */
function* end(tx: Tx, reads: readonly Read[], requester: Requester): Verb<Answer[]> {
  const changes = new Changes(tx)
  const answers = reads.map((read) => changes.answer(read, shedCommand(read.lifecycle), requester))
  yield* tx.write(changes)
  return answers
}
