/**
 * Makes jobs ready whose time has come. A job with a state of its own for waiting takes its `due`
 * edge; one that waits in its ready state only changes its lane (rule G2). Also makes jobs ready
 * that a limit or a throttle blocks no longer.
 */
import { ENGINE } from '../contract/requester.ts'
import type { Promoted } from '../contract/store.ts'
import { Changes } from './changes.ts'
import { openGates } from './gates.ts'
import type { Tx, Verb } from './operations.ts'

/** At how many gates one call looks. */
const OPEN_BATCH = 100

/** Promotes up to `limit` jobs; returns an answer for each that became ready. */
export function* promote(tx: Tx, limit: number): Verb<Promoted[]> {
  const due = yield* tx.lockDue(limit)
  const changes = new Changes(tx)
  const answers = due.map((read) => changes.answer(read, { kind: 'due' }, ENGINE))
  yield* tx.makeReady(due.filter((_, i) => answers[i]?.kind === 'same'))
  yield* tx.write(changes)
  yield* openGates(tx, OPEN_BATCH)
  return answers.filter((one): one is Promoted => one.kind !== 'rejected')
}
