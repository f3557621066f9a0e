/** Jobs that wait past their deadline, or that their queues have no time or no room for. */
import { LANES } from '../../../core/job/lanes.ts'
import { orderAt } from '../../columns.ts'
import type { Value } from '../../rows.ts'
import { failedWhenFull } from '../../shedding.ts'
import type { LimitedQueue } from '../../verbs/operations.ts'
import type { Read } from '../../verbs/reading.ts'
import { asOf } from '../query.ts'
import { countReady } from '../queues.ts'
import type { At } from './at.ts'
import { lockSound } from './sound.ts'

const SELECT_LIMITED = `
  SELECT name, max_depth AS maxDepth, max_wait_ms AS maxWaitMs FROM pawl_queues
  WHERE max_depth IS NOT NULL OR max_wait_ms IS NOT NULL ORDER BY name`

/** By each priority in turn, so that the oldest of each is found by the index. */
const selectLate = (lane: number) => `
  WITH RECURSIVE priorities (priority) AS (
    SELECT (SELECT priority FROM pawl_jobs WHERE lane = ${lane} AND queue = ?1
      ORDER BY priority LIMIT 1)
    UNION ALL
    SELECT (SELECT priority FROM pawl_jobs
      WHERE lane = ${lane} AND queue = ?1 AND priority > priorities.priority
      ORDER BY priority LIMIT 1)
    FROM priorities WHERE priorities.priority IS NOT NULL
  )
  SELECT job.* FROM priorities CROSS JOIN pawl_jobs AS job
  WHERE job.lane = ${lane} AND job.queue = ?1 AND job.priority = priorities.priority
    AND ${orderAt('job.')} < ?2 AND job.run_at < ?2
    AND job.machine IN (SELECT value FROM json_each(?3))
  LIMIT ?4`

/** The last ones that would be claimed. */
const selectSurplus = (lane: number) => `
  SELECT * FROM pawl_jobs
  WHERE lane = ${lane} AND queue = ?1 AND machine IN (SELECT value FROM json_each(?2))
  ORDER BY priority DESC, ${orderAt()} DESC, rid DESC LIMIT ?3`

/** The lanes are written as in the index, so that it is used. */
const SELECT_OVERDUE = `
  SELECT * FROM pawl_jobs
  WHERE deadline_at <= ?1 AND (lane IN (${LANES.waiting}, ${LANES.ready}, ${LANES.blocked})
      OR lane = ${LANES.idle} AND links IS NOT NULL)
    AND machine IN (SELECT value FROM json_each(?2))
  ORDER BY deadline_at, rid LIMIT ?3`

const LATE = [selectLate(LANES.ready), selectLate(LANES.blocked)]
/** Jobs that a limit blocks would be claimed last. */
const SURPLUS = [selectSurplus(LANES.blocked), selectSurplus(LANES.ready)]

/** Locks jobs of both lanes, up to `limit` in all. */
function lockOf(at: At, statements: readonly string[], values: readonly Value[], limit: number) {
  const reads: Read[] = []
  for (const sql of statements) reads.push(...lockSound(at, sql, ...values, limit - reads.length))
  return reads
}

export const SHED = {
  lockOverdue: (at: At, limit: number) =>
    lockSound(at, SELECT_OVERDUE, at.now, at.machines.known, limit),
  deadlinesByFacts: ({ connection }: At, reads: readonly Read[]) =>
    reads.map(({ job: { id, seq } }) => asOf(connection, id, seq)?.deadlineAt ?? null),
  limitedQueues: ({ connection }: At) => connection.all<LimitedQueue>(SELECT_LIMITED),
  countReady: ({ connection }: At, queue: string, bound: number) =>
    countReady(connection, queue, bound),
  lockLate: (at: At, queue: string, before: number, limit: number) =>
    lockOf(at, LATE, [queue, before, at.machines.known], limit),
  lockSurplus(at: At, queue: string, limit: number) {
    const machines = JSON.stringify(failedWhenFull(at.machines))
    return lockOf(at, SURPLUS, [queue, machines], limit)
  },
}
