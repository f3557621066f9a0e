/** Ends jobs that their queues have no time or no room for; `../shedding.ts` says how. */
import { shedCommand, shedder } from '../shedding.ts'
import type { Answer, Asker } from '../store.ts'
import { Changes } from './changes.ts'
import type { Tx, Verb } from './operations.ts'
import type { Read } from './reading.ts'

/** Ends up to `limit` jobs. */
export function* shed(tx: Tx, limit: number): Verb<Answer[]> {
  const answers: Answer[] = []
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

/** Written at once, so that the jobs are no longer counted as ready. */
function* end(tx: Tx, reads: readonly Read[], asker: Asker): Verb<Answer[]> {
  const changes = new Changes(tx)
  const answers = reads.map((read) => changes.answer(read, shedCommand(read.lifecycle), asker))
  yield* tx.write(changes)
  return answers
}
