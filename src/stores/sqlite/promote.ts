/**
 * Makes jobs ready whose time has come. A job with a state of its own for waiting takes its `due`
 * edge; one that waits in its ready state only changes its lane (rule G2).
 */
import { LANES } from '../../core/job/lanes.ts'
import { ENGINE } from '../asker.ts'
import type { Promoted } from '../store.ts'
import { answer } from './answer.ts'
import type { Connection } from './connect.ts'
import { type NumberedRow, type Read, type Shared, toSound } from './context.ts'

/** A lifecycle that this process does not know is left to one that does. */
const SELECT_DUE = `
  SELECT * FROM pawl_jobs
  WHERE lane = ${LANES.waiting} AND run_at <= ?1 AND machine IN (SELECT value FROM json_each(?2))
  ORDER BY run_at, rid LIMIT ?3`

const FLIP_LANE = `UPDATE pawl_jobs SET lane = ${LANES.ready}
    WHERE rid = ? AND lane = ${LANES.waiting}`

/** Promotes up to `limit` jobs; returns an answer for each that became ready. */
export function promote(
  shared: Shared,
  connection: Connection,
  now: number,
  limit: number,
): Promoted[] {
  const promoted: Promoted[] = []
  for (const row of connection.all<NumberedRow>(SELECT_DUE, now, shared.machines.known, limit)) {
    const read = toSound(shared, row) as Read
    const answered = answer(shared, connection, now, read, { kind: 'due' }, ENGINE)
    if (answered.kind === 'same') connection.run(FLIP_LANE, read.rid)
    if (answered.kind !== 'rejected') promoted.push(answered)
  }
  return promoted
}
