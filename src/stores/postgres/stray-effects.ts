/** Effects that are not as their marks say; see `../effects.ts`. */
import { JobNotFound } from '../../core/errors.ts'
import { ALTERED, ORPHANED, RETURNED, straysAmong } from '../effects.ts'
import type { StrayEffect, Surgeon } from '../examination.ts'
import { NOTICE } from '../notices.ts'
import { type OwnSession, type Session, statement } from './connect.ts'
import { keepNote } from './mend.ts'
import { arrayOf } from './rows-at-once.ts'

const SELECT = statement(
  (s) => `
  SELECT eid AS handle, outbox.type, name, n, outbox.state, tries, outbox.run_at, outbox.claim,
    outbox.error, mark, payload, job AS job_id, owner.type AS job_type
  FROM ${s}.outbox JOIN ${s}.jobs AS owner ON owner.id::text = left(mark, 36)
  WHERE left(mark, -9) <> job || '/' || name || '/' || n
    OR outbox.type NOT IN (owner.type, '${NOTICE}')
  ORDER BY eid LIMIT $1`,
)

/** Reads them; reads the whole outbox. */
export async function strayEffects(session: Session, limit: number): Promise<StrayEffect[]> {
  return straysAmong(await session.query<Parameters<typeof straysAmong>[0][0]>(SELECT, [limit]))
}

/** Whoever settles effects locks their jobs first, in the order of ids. */
const LOCK = statement(
  (s) => `SELECT id FROM ${s}.jobs WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE`,
)
/** A number that no other effect of the job has: two effects may have changed places. */
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

/** Gives effects the key of their mark again; must be called inside a transaction. */
export async function returnEffects(
  session: OwnSession,
  now: number,
  effects: readonly StrayEffect[],
  by: Surgeon,
): Promise<void> {
  const jobs = effects.flatMap(({ job_id, declared }) => [job_id, declared.jobId])
  await session.query(LOCK, [arrayOf(jobs)])
  for (const { handle, mark } of effects) await session.query(MOVE_OUT, [handle, mark])
  for (const effect of effects) {
    const { handle, mark, declared } = effect
    const { jobId, name, n } = declared
    const moved = await session.query(MOVE_IN, [name, n, jobId, handle, mark])
    if (moved.length === 0) throw new JobNotFound(jobId)
    await keepNote(session, now, 'outbox', JSON.stringify(effect), RETURNED, by)
  }
}
