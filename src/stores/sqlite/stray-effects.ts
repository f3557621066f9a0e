/** Effects that are not as their marks say; see `../effects.ts`. */
import { JobNotFound } from '../../core/errors.ts'
import { ALTERED, ORPHANED, RETURNED, straysAmong } from '../effects.ts'
import type { StrayEffect, Surgeon } from '../examination.ts'
import { NOTICE } from '../notices.ts'
import type { Connection } from './connect.ts'
import { keepNote } from './mend.ts'

const SELECT = `
  SELECT eid AS handle, outbox.type, name, n, outbox.state, tries, outbox.run_at, outbox.claim,
    outbox.error, mark, payload, coalesce(jobs.id, 'missing') AS job_id, owner.type AS job_type
  FROM pawl_outbox AS outbox
  JOIN pawl_jobs AS owner ON owner.id = substr(mark, 1, 36)
  LEFT JOIN pawl_jobs AS jobs ON jobs.rid = job
  WHERE job <> owner.rid OR outbox.type NOT IN (owner.type, '${NOTICE}')
    OR substr(mark, 1, length(mark) - 9) <> owner.id || '/' || name || '/' || n
  ORDER BY eid LIMIT ?`

/** Reads them; reads the whole outbox. */
export function strayEffects(connection: Connection, limit: number): StrayEffect[] {
  return straysAmong(connection.all(SELECT, limit))
}

/** A number that no other effect of the job has: two effects may have changed places. */
const MOVE_OUT = 'UPDATE pawl_outbox SET n = -eid WHERE eid = ? AND mark = ?'
/** Why a claim parked them. */
const REFUSED = `'${ALTERED}', '${ORPHANED}'`
const MOVE_IN = `
  UPDATE pawl_outbox SET job = owner.rid, name = ?1, n = ?2,
    type = iif(?1 = '${NOTICE}', ?1, owner.type),
    state = iif(pawl_outbox.error IN (${REFUSED}), 'pending', pawl_outbox.state),
    error = iif(pawl_outbox.error IN (${REFUSED}), NULL, pawl_outbox.error)
  FROM pawl_jobs AS owner WHERE owner.id = ?3 AND eid = ?4 AND mark = ?5`

/** Gives effects the key of their mark again. */
export function returnEffects(
  connection: Connection,
  now: number,
  effects: readonly StrayEffect[],
  by: Surgeon,
): void {
  for (const { handle, mark } of effects) connection.run(MOVE_OUT, handle, mark)
  for (const effect of effects) {
    const { handle, mark, declared } = effect
    const { jobId, name, n } = declared
    if (connection.run(MOVE_IN, name, n, jobId, handle, mark) === 0) throw new JobNotFound(jobId)
    keepNote(connection, now, 'pawl_outbox', JSON.stringify(effect), RETURNED, by)
  }
}
