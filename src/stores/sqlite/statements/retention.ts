/** Ended jobs in the order of their ends, and the keys of removed jobs. */
import { LANES } from '../../../core/job/lanes.ts'
import type { EndedRow } from '../../archive.ts'
import type { KeyRival, RemovedJob } from '../../contract/retention.ts'
import type { EndedPosition, TypedKey } from '../../verbs/retention-tables.ts'
import type { Connection } from '../connect.ts'
import type { At } from './at.ts'
import { IS_FREE } from './prune.ts'

const SELECT_ENDED = `
  SELECT rid AS ref, id, seq, queue, state, flow, links, type, key, outcome, reason, ended_at
  FROM pawl_jobs
  WHERE lane = ${LANES.ended} AND ended_at < ? AND (ended_at, rid) > (?, ?) AND ${IS_FREE}
  ORDER BY ended_at, rid LIMIT ?`

const COUNT_ENDED = `
  SELECT count(*) AS jobs FROM (
    SELECT 1 FROM pawl_jobs WHERE lane = ${LANES.ended} AND ended_at < ? LIMIT ?)`

const KEEP_KEY = `
  INSERT INTO pawl_tombstones (type, key, job, outcome, ended_at, keep_until)
  VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (type, key) DO UPDATE SET job = excluded.job, outcome = excluded.outcome,
    ended_at = excluded.ended_at, keep_until = excluded.keep_until`

const FREE_KEYS = `
  DELETE FROM pawl_tombstones WHERE (type, key) IN (
    SELECT type, key FROM pawl_tombstones WHERE keep_until <= ? ORDER BY keep_until LIMIT ?)`

const COLUMNS = `
  gone.job AS id, gone.type, gone.key, gone.outcome, gone.ended_at AS endedAt,
  gone.keep_until AS keepUntil`

const SELECT_REMOVED = `
  SELECT ${COLUMNS} FROM pawl_tombstones AS gone WHERE type = ? AND key = ? AND keep_until > ?`

/** A job that was created after the key became free has it rightly. */
const SELECT_RIVALS = `
  SELECT ${COLUMNS}, jobs.id AS jobId FROM pawl_tombstones AS gone
  JOIN pawl_jobs AS jobs ON jobs.type = gone.type AND jobs.key = gone.key
  WHERE jobs.created_at < gone.keep_until LIMIT ?`

export const RETENTION = {
  endedAfter(
    { connection }: At,
    after: EndedPosition | undefined,
    endedBefore: number,
    limit: number,
  ) {
    const rid = Number(after?.ref ?? Number.NaN)
    const from = Number.isSafeInteger(rid) ? [after?.endedAt ?? -1, rid] : [-1, 0]
    return connection.all<EndedRow>(SELECT_ENDED, endedBefore, ...from, limit)
  },
  countEnded: ({ connection }: At, endedBefore: number, bound: number) =>
    connection.get<{ jobs: number }>(COUNT_ENDED, endedBefore, bound)?.jobs ?? 0,
  keepKeys({ connection }: At, jobs: readonly RemovedJob[]) {
    for (const { type, key, id, outcome, endedAt, keepUntil } of jobs) {
      connection.run(KEEP_KEY, type, key, id, outcome, endedAt, keepUntil)
    }
  },
  freeRemovedKeys: ({ connection, now }: At, limit: number) =>
    connection.run(FREE_KEYS, now, limit),
  removedJobs: ({ connection, now }: At, keys: readonly TypedKey[]) =>
    keys.flatMap(({ type, key }) => findRemoved(connection, type, key, now) ?? []),
  countKeys: ({ connection }: At, bound: number) =>
    connection.get<{ keys: number }>(COUNT_KEYS, bound)?.keys ?? 0,
  dutyCursor: ({ connection }: At, name: string) =>
    connection.get<{ place: string | null }>(SELECT_CURSOR, name)?.place ?? undefined,
  keyRivals: ({ connection }: At, limit: number) =>
    connection.all<RemovedJob & { jobId: string }>(SELECT_RIVALS, limit).map(toRival),
}

const SELECT_CURSOR = 'SELECT place FROM pawl_duties WHERE name = ?'
const COUNT_KEYS = 'SELECT count(*) AS keys FROM (SELECT 1 FROM pawl_tombstones LIMIT ?)'

/** The removed job that has a key at a time. */
export function findRemoved(
  connection: Connection,
  type: string,
  key: string,
  now: number,
): RemovedJob | undefined {
  const row = connection.get<RemovedJob>(SELECT_REMOVED, type, key, now)
  return row && { ...row }
}

function toRival({ jobId, ...removed }: RemovedJob & { readonly jobId: string }): KeyRival {
  return { removed, jobId }
}
