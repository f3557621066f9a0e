/** Jobs that their queues have no time or no room for. */
import { LANES } from '../../../core/job/lanes.ts'
import { failedWhenFull } from '../../shedding.ts'
import type { LimitedQueue } from '../../verbs/operations.ts'
import { countReady } from '../queues.ts'
import type { At } from './at.ts'
import { lockSound } from './sound.ts'

const SELECT_LIMITED = `
  SELECT name, max_depth AS maxDepth, max_wait_ms AS maxWaitMs FROM pawl_queues
  WHERE max_depth IS NOT NULL OR max_wait_ms IS NOT NULL ORDER BY name`

/** By each priority in turn, so that the oldest of each is found by the index. */
const SELECT_LATE = `
  WITH RECURSIVE priorities (priority) AS (
    SELECT (SELECT priority FROM pawl_jobs WHERE lane = ${LANES.ready} AND queue = ?1
      ORDER BY priority LIMIT 1)
    UNION ALL
    SELECT (SELECT priority FROM pawl_jobs
      WHERE lane = ${LANES.ready} AND queue = ?1 AND priority > priorities.priority
      ORDER BY priority LIMIT 1)
    FROM priorities WHERE priorities.priority IS NOT NULL
  )
  SELECT job.* FROM priorities CROSS JOIN pawl_jobs AS job
  WHERE job.lane = ${LANES.ready} AND job.queue = ?1 AND job.priority = priorities.priority
    AND job.run_at < ?2 AND job.machine IN (SELECT value FROM json_each(?3))
  LIMIT ?4`

/** The last ones that would be claimed. */
const SELECT_SURPLUS = `
  SELECT * FROM pawl_jobs
  WHERE lane = ${LANES.ready} AND queue = ?1 AND machine IN (SELECT value FROM json_each(?2))
  ORDER BY priority DESC, run_at DESC, rid DESC LIMIT ?3`

export const SHED = {
  limitedQueues: ({ connection }: At) => connection.all<LimitedQueue>(SELECT_LIMITED),
  countReady: ({ connection }: At, queue: string, bound: number) =>
    countReady(connection, queue, bound),
  lockLate: (at: At, queue: string, before: number, limit: number) =>
    lockSound(at, SELECT_LATE, queue, before, at.machines.known, limit),
  lockSurplus(at: At, queue: string, limit: number) {
    const machines = JSON.stringify(failedWhenFull(at.machines))
    return lockSound(at, SELECT_SURPLUS, queue, machines, limit)
  },
}
