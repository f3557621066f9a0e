/**
 * Retention removes whole ended jobs, oldest first: the rows, then their facts and effects, in one
 * transaction that also leaves a record of what was removed (how many, which range, and a hash over
 * the removed lines). By that record the doctor tells retention from vandalism.
 *
 * With an archive the lines are handed over before anything is removed. A crash in between archives
 * them a second time, and never removes what was not archived.
 */
import { linesOf, type PrunedJob, recordOf } from '../archive.ts'
import type { Tx, Verb } from './operations.ts'

/** Collects up to `limit` jobs that ended before a time. */
export function* collectPrunable(tx: Tx, endedBefore: number, limit: number): Verb<PrunedJob[]> {
  const jobs = yield* tx.endedJobs(endedBefore, limit)
  const facts = yield* tx.factsOf(jobs)
  const collected = jobs.map((job): PrunedJob => {
    const rows = facts.get(job.ref) ?? []
    return { ...job, lines: linesOf(job.id, rows), places: rows.map(({ position }) => position) }
  })
  // One without facts was removed by another process in between, and one that cannot be read is
  // kept for the doctor: there is nothing to archive.
  return collected.filter(({ lines }) => lines.length > 0)
}

/**
 * Removes what was collected and leaves a record of it. A job that others have removed, or that has
 * changed since it was collected, was not archived as it is, and is left alone.
 */
export function* removePruned(
  tx: Tx,
  collected: readonly PrunedJob[],
  endedBefore: number,
  archived: boolean,
): Verb<number> {
  yield* tx.holdSeals()
  const removed = yield* tx.removeJobs(collected)
  const [first, ...others] = removed
  if (first === undefined) return 0
  const record = yield* tx.recordPruned(recordOf([first, ...others], endedBefore, archived))
  yield* tx.noteRemovals(record, collected, removed)
  return removed.length
}
