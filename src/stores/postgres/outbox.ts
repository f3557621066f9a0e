/**
 * The outbox: effects that a commit declared, delivered after it. Each has its own lease, tries and
 * parked state, and a stable key (job id / name / n) by which its receiver can tell a repetition.
 * When the last effect of a job is delivered, the job is done in the same transaction.
 *
 * Taking an effect moves its due time to the end of the lease, so that whoever looks for due ones
 * never meets those that others deliver. An effect is held while it has a claim and is not due.
 */
import type { Job } from '../../core/job/job.ts'
import { COUNT_MAX } from '../damage.ts'
import { type EffectRow, markOf, strayWhy, toHeldEffect } from '../effects.ts'
import { NOTICE } from '../notices.ts'
import type { EffectClaim, HeldEffect } from '../store.ts'
import type { Ticket } from './claim.ts'
import { type Session, statement } from './connect.ts'
import { isStorable } from './context.ts'
import { arrayOf } from './rows-at-once.ts'

/**
 * The types to look at, so that effects which the caller cannot deliver cost nothing; where none
 * are asked for, all that have something pending, found by skipping through the index.
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
 * `job_id` is null for orphans. A look by the primary key for each effect, in the same statement; a
 * join would let the planner read the whole index of jobs instead.
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

/** By the index of what is due, and told from others of the same millisecond by the claim. */
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

/** Takes effects that are due and that nobody is delivering; first those of a lost answer. */
export async function claimEffects(
  session: Session,
  { now, claimId }: Ticket,
  { limit, leaseMs, types }: EffectClaim,
  redo: boolean,
): Promise<HeldEffect[]> {
  const asked = types === undefined ? null : arrayOf(types.filter(isStorable))
  const lease = [asked, claimId, now + leaseMs]
  const mine = redo ? await session.query<EffectRow>(RECALL, lease) : []
  const rows = mine.length > 0 ? mine : await session.query<EffectRow>(TAKE, [...lease, now, limit])
  const strays: { eid: number; why: string }[] = []
  const sound = rows.filter((row) => {
    // The key by which its receiver knows it may be another one.
    const why = strayWhy(row)
    if (why !== undefined) strays.push({ eid: row.eid, why })
    return why === undefined
  })
  if (strays.length > 0) {
    const eids = arrayOf(strays.map(({ eid }) => eid))
    await session.query(PARK_STRAYS, [now, eids, arrayOf(strays.map(({ why }) => why)), claimId])
  }
  return sound.map((row) => toHeldEffect(claimId, row))
}

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
  const numbers = new Map<string, number>()
  const placed = effects.map(({ name }) => {
    const n = (numbers.get(name) ?? 0) + 1
    numbers.set(name, n)
    return n
  })
  await session.query(INSERT_EFFECTS, [
    id,
    type,
    now,
    arrayOf(effects.map(({ name }) => name)),
    arrayOf(placed),
    arrayOf(effects.map(({ payload }) => payload)),
    arrayOf(
      effects.map(({ name, payload }, i) =>
        markOf({ job_id: id, type, name, n: placed[i] as number, payload }),
      ),
    ),
  ])
}
