/** Jobs that their queues have no time or no room for. */
import { LANES } from '../../../core/job/lanes.ts'
import { failedWhenFull } from '../../shedding.ts'
import type { LimitedQueue } from '../../verbs/operations.ts'
import { statement } from '../connect.ts'
import { countReady } from '../queues.ts'
import { arrayOf } from '../rows-at-once.ts'
import type { At } from './at.ts'
import { lockSound } from './sound.ts'

const SELECT_LIMITED = statement(
  (s) => `
  SELECT name, max_depth AS "maxDepth", max_wait_ms AS "maxWaitMs" FROM ${s}.queues
  WHERE max_depth IS NOT NULL OR max_wait_ms IS NOT NULL ORDER BY name`,
)

/** By each priority in turn, so that the oldest of each is found by the index. */
const LOCK_LATE = statement(
  (s) => `
  WITH RECURSIVE priorities (priority) AS (
    (SELECT priority FROM ${s}.jobs WHERE lane = ${LANES.ready} AND queue = $1
      ORDER BY priority LIMIT 1)
    UNION ALL
    SELECT (SELECT priority FROM ${s}.jobs
      WHERE lane = ${LANES.ready} AND queue = $1 AND priority > priorities.priority
      ORDER BY priority LIMIT 1)
    FROM priorities WHERE priorities.priority IS NOT NULL
  )
  SELECT late.* FROM priorities CROSS JOIN LATERAL (
    SELECT * FROM ${s}.jobs
    WHERE lane = ${LANES.ready} AND queue = $1 AND priority = priorities.priority AND run_at < $2
      AND machine = ANY ($3::int[])
    ORDER BY run_at, id LIMIT $4 FOR UPDATE SKIP LOCKED) AS late
  LIMIT $4`,
)

/** The last ones that would be claimed. */
const LOCK_SURPLUS = statement(
  (s) => `
  SELECT * FROM ${s}.jobs WHERE lane = ${LANES.ready} AND queue = $1 AND machine = ANY ($2::int[])
  ORDER BY priority DESC, run_at DESC, id DESC LIMIT $3 FOR UPDATE SKIP LOCKED`,
)

export const SHED = {
  limitedQueues: ({ session }: At) => session.query<LimitedQueue>(SELECT_LIMITED),
  countReady: ({ session }: At, queue: string, bound: number) => countReady(session, queue, bound),
  lockLate: (at: At, queue: string, before: number, limit: number) =>
    lockSound(at, LOCK_LATE, queue, before, at.machines.known, limit),
  lockSurplus: (at: At, queue: string, limit: number) =>
    lockSound(at, LOCK_SURPLUS, queue, arrayOf(failedWhenFull(at.machines)), limit),
}
