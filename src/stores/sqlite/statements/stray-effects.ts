/** Effects whose rows do not agree with their marks; see `../../effects.ts`. */

import type { StrayEffect } from '../../contract/examination.ts'
import { ALTERED, ORPHANED, straysAmong } from '../../effects.ts'
import { NOTICE } from '../../notices.ts'
import type { At } from './at.ts'

/** The outbox has the numbers of jobs here, and their ids on PostgreSQL: hence the second join. */
const SELECT = `
  SELECT eid AS handle, outbox.type, name, n, outbox.state, tries, outbox.run_at, outbox.claim,
    outbox.error, mark, payload, coalesce(jobs.id, 'missing') AS job_id, owner.type AS job_type
  FROM pawl_outbox AS outbox
  JOIN pawl_jobs AS owner ON owner.id = substr(mark, 1, 36)
  LEFT JOIN pawl_jobs AS jobs ON jobs.rid = job
  WHERE job <> owner.rid OR outbox.type NOT IN (owner.type, '${NOTICE}')
    OR substr(mark, 1, length(mark) - 9) <> owner.id || '/' || name || '/' || n
  ORDER BY eid LIMIT ?`

const MOVE_OUT = 'UPDATE pawl_outbox SET n = -eid WHERE eid = ? AND mark = ?'
/** Why a claim parked them. */
const REFUSED = `'${ALTERED}', '${ORPHANED}'`
const MOVE_IN = `
  UPDATE pawl_outbox SET job = owner.rid, name = ?1, n = ?2,
    type = iif(?1 = '${NOTICE}', ?1, owner.type),
    state = iif(pawl_outbox.error IN (${REFUSED}), 'pending', pawl_outbox.state),
    error = iif(pawl_outbox.error IN (${REFUSED}), NULL, pawl_outbox.error)
  FROM pawl_jobs AS owner WHERE owner.id = ?3 AND eid = ?4 AND mark = ?5`

export const STRAY_EFFECTS = {
  strayEffects: ({ connection }: At, limit: number) => straysAmong(connection.all(SELECT, limit)),
  freeKeys({ connection }: At, effects: readonly StrayEffect[]) {
    for (const { handle, mark } of effects) connection.run(MOVE_OUT, handle, mark)
  },
  returnEffect({ connection }: At, { handle, mark, declared }: StrayEffect) {
    return connection.run(MOVE_IN, declared.name, declared.n, declared.jobId, handle, mark) > 0
  },
}
