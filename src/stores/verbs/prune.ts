/**
 * Retention removes whole ended jobs, oldest first: the rows, then their facts and effects, in one
 * transaction that also writes a record of what was removed (how many, which range, and a hash over
 * the removed lines). By that record the doctor distinguishes retention from other removals.
 *
 * With an archive the lines are archived before anything is removed. A crash in between archives
 * them a second time. What was not archived is never removed.
 */
import { type EndedJob, linesOf, type PrunedJob, type Removing, recordOf } from '../archive.ts'
import type { RemovedJob } from '../contract/retention.ts'
import type { Tx, Verb } from './operations.ts'
import { noteRemovals } from './seal-tables.ts'

/** Collects up to `limit` jobs that ended before a time. */
export function* collectPrunable(tx: Tx, endedBefore: number, limit: number): Verb<PrunedJob[]> {
  return yield* withLines(tx, yield* tx.endedJobs(endedBefore, limit))
}

/** How many ledgers are read at once: rows of many would outlive the young part of the heap. */
const CHUNK = 100

/** Reads the ledgers of ended jobs, as lines. */
export function* withLines(tx: Tx, jobs: readonly EndedJob[]): Verb<PrunedJob[]> {
  const collected: PrunedJob[] = []
  for (let from = 0; from < jobs.length; from += CHUNK) {
    const chunk = jobs.slice(from, from + CHUNK)
    const facts = yield* tx.factsOf(chunk)
    for (const job of chunk) {
      const rows = facts.get(job.ref) ?? []
      const positions = rows.map(({ position }) => position)
      collected.push({ ...job, lines: linesOf(job.id, rows), positions })
    }
  }
  // A job without facts was removed by another process meanwhile. One that cannot be read is kept
  // for the doctor: it cannot be archived.
  return collected.filter(({ lines }) => lines.length > 0)
}

/**
 * Removes what was collected, keeps keys, and writes a record of it. A job that others have
 * removed, or that has changed since it was collected, was not archived as it is, and is left
 * alone. `keysOf` returns the keys of removed jobs that stay taken.
 */
export function* removePruned(
  tx: Tx,
  collected: readonly PrunedJob[],
  removing: Removing,
  keysOf: (removed: readonly PrunedJob[]) => readonly RemovedJob[] = () => [],
): Verb<{ readonly removed: number; readonly keys: number }> {
  yield* tx.holdSeals()
  const removed = yield* tx.removeJobs(collected)
  const [first, ...others] = removed
  if (first === undefined) return { removed: 0, keys: 0 }
  const kept = keysOf(removed)
  if (kept.length > 0) yield* tx.keepKeys(kept)
  const record = yield* tx.recordPruned(recordOf([first, ...others], removing, kept.length))
  yield* noteRemovals(tx, record, collected, removed)
  return { removed: removed.length, keys: kept.length }
}
