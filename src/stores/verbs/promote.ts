/**
 * Makes jobs ready whose time has come. A job with a state of its own for waiting takes its `due`
 * edge; one that waits in its ready state only changes its lane (rule G2).
 */
import { ENGINE } from '../asker.ts'
import type { Promoted } from '../store.ts'
import { Changes } from './changes.ts'
import type { Tx, Verb } from './operations.ts'

/** Promotes up to `limit` jobs; returns an answer for each that became ready. */
export function* promote(tx: Tx, limit: number): Verb<Promoted[]> {
  const due = yield* tx.lockDue(limit)
  const changes = new Changes(tx)
  const answers = due.map((read) => changes.answer(read, { kind: 'due' }, ENGINE))
  yield* tx.makeReady(due.filter((_, i) => answers[i]?.kind === 'same'))
  yield* tx.write(changes)
  return answers.filter((one): one is Promoted => one.kind !== 'rejected')
}
