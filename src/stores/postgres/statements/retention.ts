/** Ended jobs in the order of their ends, and the keys of removed jobs. */
import { LANES } from '../../../core/job/lanes.ts'
import type { EndedRow } from '../../archive.ts'
import type { KeyRival, RemovedJob } from '../../contract/retention.ts'
import type { EndedPosition, TypedKey } from '../../verbs/retention-tables.ts'
import { type Session, statement } from '../connect.ts'
import { isStorable, isUuid } from '../context.ts'
import { arrayOf } from '../rows-at-once.ts'
import type { At } from './at.ts'
import { isFree } from './prune.ts'

const SELECT_ENDED = statement(
  (s) => `
  SELECT id AS ref, id, seq, queue, state, flow, links, type, key, outcome, reason, ended_at
  FROM ${s}.jobs
  WHERE lane = ${LANES.ended} AND ended_at < $1 AND (ended_at, id) > ($2::bigint, $3::uuid)
    AND ${isFree(s)}
  ORDER BY ended_at, id LIMIT $4`,
)

const FIRST = [-1, '00000000-0000-0000-0000-000000000000'] as const

const COUNT_ENDED = statement(
  (s) => `
  SELECT count(*)::int AS jobs FROM (
    SELECT 1 FROM ${s}.jobs WHERE lane = ${LANES.ended} AND ended_at < $1 LIMIT $2) AS found`,
)

const KEEP_KEYS = statement(
  (s) => `
  INSERT INTO ${s}.tombstones (type, key, job, outcome, ended_at, keep_until)
  SELECT * FROM unnest($1::text[], $2::text[], $3::uuid[], $4::text[], $5::bigint[], $6::bigint[])
    AS gone (type, key, job, outcome, ended_at, keep_until)
  ORDER BY type, key
  ON CONFLICT (type, key) DO UPDATE SET job = excluded.job, outcome = excluded.outcome,
    ended_at = excluded.ended_at, keep_until = excluded.keep_until`,
)

/** Keys that another process frees are left to it. */
const FREE_KEYS = statement(
  (s) => `
  DELETE FROM ${s}.tombstones WHERE ctid = ANY (ARRAY (
    SELECT ctid FROM ${s}.tombstones WHERE keep_until <= $1 ORDER BY keep_until LIMIT $2
    FOR UPDATE SKIP LOCKED)) RETURNING 1`,
)

const COLUMNS = `
  gone.job AS id, gone.type, gone.key, gone.outcome, gone.ended_at AS "endedAt",
  gone.keep_until AS "keepUntil"`

const SELECT_REMOVED = statement(
  (s) => `
  SELECT ${COLUMNS} FROM unnest($1::text[], $2::text[]) AS asked (type, key)
  JOIN ${s}.tombstones AS gone ON gone.type = asked.type AND gone.key = asked.key
  WHERE gone.keep_until > $3`,
)

const SELECT_CURSOR = statement((s) => `SELECT place FROM ${s}.duties WHERE name = $1`)

const COUNT_KEYS = statement(
  (s) => `SELECT count(*)::int AS keys FROM (SELECT 1 FROM ${s}.tombstones LIMIT $1) AS found`,
)

/** A job that was created after the key became free has it rightly. */
const SELECT_RIVALS = statement(
  (s) => `
  SELECT ${COLUMNS}, jobs.id AS "jobId" FROM ${s}.tombstones AS gone
  JOIN ${s}.jobs ON jobs.type = gone.type AND jobs.key = gone.key
  WHERE jobs.created_at < gone.keep_until LIMIT $1`,
)

export const RETENTION = {
  endedAfter(
    { session }: At,
    after: EndedPosition | undefined,
    endedBefore: number,
    limit: number,
  ) {
    const from = isUuid(after?.ref) ? [after?.endedAt ?? -1, after?.ref ?? ''] : FIRST
    return session.query<EndedRow>(SELECT_ENDED, [endedBefore, ...from, limit])
  },
  async countEnded({ session }: At, endedBefore: number, bound: number) {
    const [row] = await session.query<{ jobs: number }>(COUNT_ENDED, [endedBefore, bound])
    return row?.jobs ?? 0
  },
  async keepKeys({ session }: At, jobs: readonly RemovedJob[]) {
    await session.query(KEEP_KEYS, [
      arrayOf(jobs.map(({ type }) => type)),
      arrayOf(jobs.map(({ key }) => key)),
      arrayOf(jobs.map(({ id }) => id)),
      arrayOf(jobs.map(({ outcome }) => outcome)),
      arrayOf(jobs.map(({ endedAt }) => endedAt)),
      arrayOf(jobs.map(({ keepUntil }) => keepUntil)),
    ])
  },
  async freeRemovedKeys({ session, now }: At, limit: number) {
    return (await session.query(FREE_KEYS, [now, limit])).length
  },
  removedJobs: ({ session, now }: At, keys: readonly TypedKey[]) => removedAt(session, keys, now),
  async countKeys({ session }: At, bound: number) {
    const [row] = await session.query<{ keys: number }>(COUNT_KEYS, [bound])
    return row?.keys ?? 0
  },
  async dutyCursor({ session }: At, name: string) {
    const [row] = await session.query<{ place: string | null }>(SELECT_CURSOR, [name])
    return row?.place ?? undefined
  },
  async keyRivals({ session }: At, limit: number) {
    const rows = await session.query<RemovedJob & { jobId: string }>(SELECT_RIVALS, [limit])
    return rows.map(({ jobId, ...removed }): KeyRival => ({ removed, jobId }))
  },
}

/** The removed jobs that have these keys at a time. */
export function removedAt(
  session: Session,
  keys: readonly TypedKey[],
  now: number,
): Promise<RemovedJob[]> {
  const known = keys.filter(({ type, key }) => isStorable(type) && isStorable(key))
  return session.query<RemovedJob>(SELECT_REMOVED, [
    arrayOf(known.map(({ type }) => type)),
    arrayOf(known.map(({ key }) => key)),
    now,
  ])
}
