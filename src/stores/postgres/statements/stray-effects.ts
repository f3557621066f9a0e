/** Effects whose rows do not agree with their marks; see `../../effects.ts`. */

import type { StrayEffect } from '../../contract/examination.ts'
import { ALTERED, ORPHANED, straysAmong } from '../../effects.ts'
import { NOTICE } from '../../notices.ts'
import { statement } from '../connect.ts'
import type { At } from './at.ts'

const SELECT = statement(
  (s) => `
  SELECT eid AS handle, outbox.type, name, n, outbox.state, tries, outbox.run_at, outbox.claim,
    outbox.error, mark, payload, job AS job_id, owner.type AS job_type
  FROM ${s}.outbox JOIN ${s}.jobs AS owner ON owner.id::text = left(mark, 36)
  WHERE left(mark, -9) <> job || '/' || name || '/' || n
    OR outbox.type NOT IN (owner.type, '${NOTICE}')
  ORDER BY eid LIMIT $1`,
)

/** The number of an effect is an `int` here, and `eid` is a `bigint`. */
const MOVE_OUT = statement(
  (s) => `UPDATE ${s}.outbox SET n = -1 - (eid % 2000000000) WHERE eid = $1 AND mark = $2`,
)
/** Why a claim parked them. */
const REFUSED = `'${ALTERED}', '${ORPHANED}'`
const MOVE_IN = statement(
  (s) => `
  UPDATE ${s}.outbox SET job = owner.id, name = $1, n = $2,
    type = CASE WHEN $1 = '${NOTICE}' THEN $1 ELSE owner.type END,
    state = CASE WHEN outbox.error IN (${REFUSED}) THEN 'pending' ELSE outbox.state END,
    error = CASE WHEN outbox.error NOT IN (${REFUSED}) THEN outbox.error END
  FROM ${s}.jobs AS owner WHERE owner.id = $3 AND eid = $4 AND mark = $5 RETURNING eid`,
)

type Candidate = Parameters<typeof straysAmong>[0][0]

export const STRAY_EFFECTS = {
  async strayEffects({ session }: At, limit: number) {
    return straysAmong(await session.query<Candidate>(SELECT, [limit]))
  },
  async freeKeys({ session }: At, effects: readonly StrayEffect[]) {
    for (const { handle, mark } of effects) await session.query(MOVE_OUT, [handle, mark])
  },
  async returnEffect({ session }: At, { handle, mark, declared }: StrayEffect) {
    const { jobId, name, n } = declared
    return (await session.query(MOVE_IN, [name, n, jobId, handle, mark])).length > 0
  },
}
