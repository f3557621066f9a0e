/** Moves effects back under the keys of their marks; see `../effects.ts`. */
import { JobNotFound } from '../../core/errors.ts'
import type { RepairAuthor, StrayEffect } from '../contract/examination.ts'
import { RETURNED } from '../effects.ts'
import type { Tx, Verb } from './operations.ts'

/** Returns all of these effects to their keys, with a note of each, or throws `JobNotFound`. */
export function* returnEffects(
  tx: Tx,
  effects: readonly StrayEffect[],
  by: RepairAuthor,
): Verb<void> {
  // `settleEffects` also locks jobs before effects.
  yield* tx.lockJobs(effects.flatMap(({ job_id, declared }) => [job_id, declared.jobId]))
  // Two effects may have each other's key, so all of them leave their keys first.
  yield* tx.freeKeys(effects)
  for (const effect of effects) {
    if (!(yield* tx.returnEffect(effect))) throw new JobNotFound(effect.declared.jobId)
    yield* tx.noteRow('outbox', JSON.stringify(effect), RETURNED, by)
  }
}
