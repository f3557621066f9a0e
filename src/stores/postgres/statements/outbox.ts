/** Effects that are claimed, listed and declared. */
import type { Job } from '../../../core/job/job.ts'
import type { EffectClaim } from '../../contract/store.ts'
import { COUNT_MAX } from '../../damage.ts'
import { type EffectRow, markOf, numbered, SCAN_CHUNK, type SeenEffect } from '../../effects.ts'
import { NOTICE } from '../../notices.ts'
import { type Session, statement } from '../connect.ts'
import { isStorable, isUuid } from '../context.ts'
import { arrayOf } from '../rows-at-once.ts'
import type { At } from './at.ts'

/**
 * The types to look at, so that effects of other types cost nothing. If none are given, all types
 * with pending effects, found by skipping through the index.
 */
export const pendingTypes = (s: string) => `
  RECURSIVE pending (type) AS (
    (SELECT type FROM ${s}.outbox
      WHERE state = 'pending' AND type > '' AND $1::text[] IS NULL ORDER BY type LIMIT 1)
    UNION ALL
    SELECT (
      SELECT type FROM ${s}.outbox
      WHERE state = 'pending' AND type > pending.type ORDER BY type LIMIT 1)
    FROM pending WHERE pending.type IS NOT NULL
  ), wanted AS (
    SELECT DISTINCT type FROM unnest($1::text[]) AS given (type)
    UNION ALL
    SELECT type FROM pending WHERE type IS NOT NULL
  )`

/**
 * `job_id` is null for orphans. By the primary key for each effect: for a join the planner would
 * read the whole index of jobs.
 */
const taken = (s: string) => `
  SELECT took.*, (
    SELECT owner.id FROM ${s}.jobs AS owner
    WHERE owner.id = took.job AND took.type IN (owner.type, '${NOTICE}')) AS job_id
  FROM took ORDER BY took.eid`

const TAKE = statement(
  (s) => `
  WITH ${pendingTypes(s)}, pick AS (
    SELECT due.eid FROM wanted CROSS JOIN LATERAL (
      SELECT eid, run_at FROM ${s}.outbox
      WHERE state = 'pending' AND type = wanted.type AND run_at <= $4
      ORDER BY run_at, eid LIMIT $5 FOR UPDATE SKIP LOCKED
    ) AS due ORDER BY due.run_at, due.eid LIMIT $5
  ), took AS (
    UPDATE ${s}.outbox SET claim = $2, run_at = $3, tries = least(tries, ${COUNT_MAX}) + 1
    WHERE eid = ANY (ARRAY (SELECT eid FROM pick))
    RETURNING *
  ) ${taken(s)}`,
)

/**
 * By the index of due effects; the claim distinguishes them from others of the same millisecond.
 */
const RECALL = statement(
  (s) => `
  WITH ${pendingTypes(s)}, took AS MATERIALIZED (
    SELECT * FROM ${s}.outbox
    WHERE state = 'pending' AND type = ANY (ARRAY (SELECT type FROM wanted))
      AND run_at = $3 AND claim = $2
  ) ${taken(s)}`,
)

const PARK_STRAYS = statement(
  (s) => `
  UPDATE ${s}.outbox SET state = 'parked', claim = NULL, run_at = $1, error = stray.why
  FROM unnest($2::bigint[], $3::text[]) AS stray (eid, why)
  WHERE outbox.eid = stray.eid AND outbox.eid = ANY ($2::bigint[]) AND outbox.claim = $4`,
)

const INSERT_EFFECTS = statement(
  (s) => `
  INSERT INTO ${s}.outbox (job, type, name, n, payload, run_at, mark)
  SELECT $1, $2, name, n, payload, $3, mark
  FROM unnest($4::text[], $5::int[], $6::text[], $7::text[]) WITH ORDINALITY
    AS e (name, n, payload, mark, place)
  ORDER BY place`,
)

/** Declares effects of a commit; the same name again gets the next number. */
export async function insertEffects(
  session: Session,
  now: number,
  { id, type }: Pick<Job, 'id' | 'type'>,
  effects: readonly { readonly name: string; readonly payload: string }[],
): Promise<void> {
  if (effects.length === 0) return
  const declared = numbered(effects)
  await session.query(INSERT_EFFECTS, [
    id,
    type,
    now,
    arrayOf(declared.map(({ name }) => name)),
    arrayOf(declared.map(({ n }) => n)),
    arrayOf(declared.map(({ payload }) => payload)),
    arrayOf(declared.map((effect) => markOf({ job_id: id, type, ...effect }))),
  ])
}

const windowOf = (where: string) =>
  statement(
    (s) => `
  SELECT eid, state, type FROM ${s}.outbox WHERE ${where} eid < $1
  ORDER BY eid DESC LIMIT ${SCAN_CHUNK}`,
  )

const SELECT_WINDOW = windowOf('')
const SELECT_PARKED = windowOf("state = 'parked' AND")

const SELECT_OF_JOB = statement((s) => `SELECT eid, state, type FROM ${s}.outbox WHERE job = $1`)

const SELECT_EFFECTS = statement(
  (s) => `
  SELECT *, job AS job_id FROM ${s}.outbox WHERE eid = ANY ($1::bigint[]) ORDER BY eid DESC`,
)

export const OUTBOX = {
  /** First those of a lost answer, which are under this claim already. */
  async takeEffects({ session, now }: At, claim: string, request: EffectClaim, redo: boolean) {
    const { limit, leaseMs, types } = request
    const asked = types === undefined ? null : arrayOf(types.filter(isStorable))
    const lease = [asked, claim, now + leaseMs]
    const own = redo ? await session.query<EffectRow>(RECALL, lease) : []
    return own.length > 0 ? own : session.query<EffectRow>(TAKE, [...lease, now, limit])
  },
  async parkStrays(
    { session, now }: At,
    claim: string,
    strays: readonly { readonly eid: number; readonly why: string }[],
  ) {
    const eids = arrayOf(strays.map(({ eid }) => eid))
    await session.query(PARK_STRAYS, [now, eids, arrayOf(strays.map(({ why }) => why)), claim])
  },
  effectsBelow: ({ session }: At, cursor: number, parkedOnly: boolean) =>
    session.query<SeenEffect>(parkedOnly ? SELECT_PARKED : SELECT_WINDOW, [cursor]),
  /** The database refuses to compare an id that is no UUID. */
  effectsOfJob: ({ session }: At, jobId: string) =>
    isUuid(jobId) ? session.query<SeenEffect>(SELECT_OF_JOB, [jobId]) : [],
  effectsByNumber: ({ session }: At, eids: readonly number[]) =>
    session.query<EffectRow>(SELECT_EFFECTS, [arrayOf(eids)]),
}
