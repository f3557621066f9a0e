/**
 * Strict groups: jobs that run one at a time, in order of enqueue.
 *
 * The first job of a group is looked for by a later statement than the one that locked the gate of
 * the group: a statement that waited for a lock sees the world as it was before it waited.
 */
import { LANES } from '../../../core/job/lanes.ts'
import { strictGroupOf } from '../../../core/limits/keys.ts'
import type { GroupPlace } from '../../contract/limits.ts'
import type { Head } from '../../verbs/gates.ts'
import { type Session, statement } from '../connect.ts'
import { isUuid } from '../context.ts'
import { arrayOf } from '../rows-at-once.ts'
import type { At } from './at.ts'

/** The jobs that hold a group. The conditions are those of the index `jobs_strict`. */
const HOLDING = `
      limit_key >= 'strict/' AND limit_key < 'strict0' AND lane <> ${LANES.ended}
      AND lane <> ${LANES.delivering}
      AND NOT (lane = ${LANES.parked} AND strpos(split_part(limit_key, ' ', 1), '=') > 0)
      AND split_part(split_part(limit_key, ' ', 1), '=', 1)`
/** The first of them. */
const SELECT_HEADS = statement(
  (s) => `
  SELECT item.name AS "group", head.id AS ref,
    CASE WHEN head.lane = ${LANES.blocked} AND head.blocked_on = item.name THEN 1 ELSE 0 END
      AS blocked
  FROM unnest($1::text[]) AS item (name) CROSS JOIN LATERAL (
    SELECT id, lane, blocked_on FROM ${s}.jobs
    WHERE ${HOLDING} = item.name ORDER BY created_at, id LIMIT 1
  ) AS head`,
)
const SELECT_JOB = statement((s) => `SELECT created_at, limit_key FROM ${s}.jobs WHERE id = $1`)
const SELECT_PLACE = statement(
  (s) => `
  SELECT (
    SELECT id FROM ${s}.jobs WHERE ${HOLDING} = $1 ORDER BY created_at, id LIMIT 1
  ) AS head, (
    SELECT count(*)::int FROM (
      SELECT 1 FROM ${s}.jobs WHERE ${HOLDING} = $1
        AND (created_at, id) < ($2::bigint, $3::uuid) LIMIT $4
    ) AS before
  ) AS ahead`,
)

/**
 * Rows that others lock are left out: a transaction that cancels such a job waits for the gate of
 * its group, which this transaction holds.
 */
const MAKE_READY = statement(
  (s) => `
  UPDATE ${s}.jobs SET lane = ${LANES.ready} WHERE id = ANY (ARRAY (
    SELECT id FROM ${s}.jobs WHERE id = ANY ($1::uuid[]) AND lane = ${LANES.blocked}
    FOR UPDATE SKIP LOCKED))
  RETURNING id`,
)

/** The first jobs of groups whose gates are locked. */
async function findHeads(session: Session, groups: readonly string[]): Promise<Head[]> {
  type Row = Pick<Head, 'group' | 'ref'> & { readonly blocked: number }
  const rows = await session.query<Row>(SELECT_HEADS, [arrayOf(groups)])
  return rows.map(({ group, ref, blocked }) => ({ group, ref, isBlocked: blocked === 1 }))
}

/** Makes the first jobs of groups ready if their groups block them; says which were locked. */
export async function moveHeads(
  session: Session,
  groups: readonly string[],
): Promise<ReadonlyMap<string, { readonly jobs: number; readonly missed?: true }>> {
  if (groups.length === 0) return new Map()
  const blocked = (await findHeads(session, groups)).filter(({ isBlocked }) => isBlocked)
  if (blocked.length === 0) return new Map()
  const ids = arrayOf(blocked.map(({ ref }) => ref))
  const moved = new Set(
    (await session.query<{ id: string }>(MAKE_READY, [ids])).map(({ id }) => id as unknown),
  )
  return new Map(
    blocked.map(({ group, ref }) => [
      group,
      moved.has(ref) ? { jobs: 1 } : { jobs: 0, missed: true },
    ]),
  )
}

async function groupPlace(
  { session }: At,
  jobId: string,
  bound: number,
): Promise<GroupPlace | undefined> {
  if (!isUuid(jobId)) return undefined
  type Row = { readonly created_at: number; readonly limit_key: string | null }
  const [job] = await session.query<Row>(SELECT_JOB, [jobId])
  const group = strictGroupOf(job?.limit_key ?? null)
  if (job === undefined || group === undefined) return undefined
  const { gate } = group
  type Place = { readonly head: string | null; readonly ahead: number }
  const values = [gate, job.created_at, jobId, bound]
  const [place] = await session.query<Place>(SELECT_PLACE, values)
  return place?.head == null ? undefined : { gate, head: place.head, ahead: place.ahead }
}

export const STRICT = {
  groupPlace,
  heads: ({ session }: At, groups: readonly string[]) =>
    groups.length === 0 ? [] : findHeads(session, groups),
}
