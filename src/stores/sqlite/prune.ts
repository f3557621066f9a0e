/**
 * Retention removes whole ended jobs, oldest first: the row, then its facts and effects, in one
 * transaction that also leaves a record of what was removed (how many, which range, and a hash over
 * the removed lines). By that record the doctor tells retention from vandalism.
 *
 * With an archive the lines are handed over before anything is removed. A crash in between archives
 * them a second time, and never removes what was not archived.
 */
import { LANES } from '../../core/job/lanes.ts'
import { linesOf, recordOf, type Sheaf } from '../archive.ts'
import type { FactRow } from '../rows.ts'
import type { Connection } from './connect.ts'
import type { NumberedRow } from './context.ts'
import { noteRemovals } from './seals.ts'

const SELECT_ENDED = `
  SELECT rid, id, seq, queue, state FROM pawl_jobs
  WHERE lane = ${LANES.ended} AND ended_at < ? ORDER BY ended_at, rid LIMIT ?`

const SELECT_FACTS = 'SELECT * FROM pawl_ledger WHERE job = ? ORDER BY seq'

/** A job that will be removed, by its number. */
type NumberedSheaf = Sheaf & Pick<NumberedRow, 'rid'>

/** Collects up to `limit` jobs that ended before a time. */
export function harvest(
  connection: Connection,
  endedBefore: number,
  limit: number,
): NumberedSheaf[] {
  return (
    connection
      .all<Omit<NumberedSheaf, 'lines' | 'places'>>(SELECT_ENDED, endedBefore, limit)
      .map((job) => {
        type Row = FactRow & { pos: number; payload: string | null }
        const rows = connection.all<Row>(SELECT_FACTS, job.rid)
        const lines = linesOf(job.id, rows)
        return { ...job, lines, places: rows.map(({ pos }) => pos) }
      })
      // One without facts was removed by another process in between, and one that cannot be read
      // is kept for the doctor: there is nothing to archive.
      .filter(({ lines }) => lines.length > 0)
  )
}

const INSERT_PRUNED = `
  INSERT INTO pawl_pruned (at, jobs, facts, first_id, last_id, ended_before, sha256, archived)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

const UNCOUNT = 'UPDATE pawl_ended_counts SET jobs = jobs - 1 WHERE queue = ? AND state = ?'

const REMOVE = `DELETE FROM pawl_jobs WHERE rid = ? AND seq = ? AND lane = ${LANES.ended}`

/**
 * Removes what was collected and leaves a record of it. A job that others have removed, or that has
 * changed since it was collected, was not archived as it is, and is left alone.
 */
export function removeHarvest(
  connection: Connection,
  now: number,
  sheaves: readonly NumberedSheaf[],
  endedBefore: number,
  archived: boolean,
): number {
  const removed = sheaves.filter(({ rid, seq, queue, state }) => {
    if (connection.run(REMOVE, rid, seq) === 0) return false
    connection.run('DELETE FROM pawl_ledger WHERE job = ?', rid)
    connection.run('DELETE FROM pawl_outbox WHERE job = ?', rid)
    connection.run(UNCOUNT, queue, state)
    return true
  })
  const [first, ...others] = removed
  if (first === undefined) return 0
  const record = recordOf([first, ...others], endedBefore)
  const values = [now, ...record, archived ? 1 : 0]
  const { lastInsertRowid: number } = connection.sql(INSERT_PRUNED).run(...values)
  noteRemovals(connection, Number(number), sheaves, removed)
  return removed.length
}
