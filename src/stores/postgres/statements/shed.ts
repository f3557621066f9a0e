/** Jobs that wait past their deadline, or that their queues have no time or no room for. */
import { LANES } from '../../../core/job/lanes.ts'
import { orderAt } from '../../columns.ts'
import type { Value } from '../../rows.ts'
import { failedWhenFull } from '../../shedding.ts'
import type { LimitedQueue } from '../../verbs/operations.ts'
import type { Read } from '../../verbs/reading.ts'
import { type Statement, statement } from '../connect.ts'
import { asOf } from '../query.ts'
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
const lockLate = (lane: number) =>
  statement(
    (s) => `
  WITH RECURSIVE priorities (priority) AS (
    (SELECT priority FROM ${s}.jobs WHERE lane = ${lane} AND queue = $1
      ORDER BY priority LIMIT 1)
    UNION ALL
    SELECT (SELECT priority FROM ${s}.jobs
      WHERE lane = ${lane} AND queue = $1 AND priority > priorities.priority
      ORDER BY priority LIMIT 1)
    FROM priorities WHERE priorities.priority IS NOT NULL
  )
  SELECT late.* FROM priorities CROSS JOIN LATERAL (
    SELECT * FROM ${s}.jobs
    WHERE lane = ${lane} AND queue = $1 AND priority = priorities.priority
      AND ${orderAt()} < $2 AND run_at < $2 AND machine = ANY ($3::int[])
    ORDER BY ${orderAt()}, id LIMIT $4 FOR UPDATE SKIP LOCKED) AS late
  LIMIT $4`,
  )

/** The last ones that would be claimed. */
const lockSurplus = (lane: number) =>
  statement(
    (s) => `
  SELECT * FROM ${s}.jobs WHERE lane = ${lane} AND queue = $1 AND machine = ANY ($2::int[])
  ORDER BY priority DESC, ${orderAt()} DESC, id DESC LIMIT $3 FOR UPDATE SKIP LOCKED`,
  )

/** The lanes are written as in the index, so that it is used. */
const LOCK_OVERDUE = statement(
  (s) => `
  SELECT * FROM ${s}.jobs
  WHERE deadline_at <= $1 AND (lane IN (${LANES.waiting}, ${LANES.ready}, ${LANES.blocked})
      OR lane = ${LANES.idle} AND links IS NOT NULL)
    AND machine = ANY ($2::int[])
  ORDER BY deadline_at, id LIMIT $3 FOR UPDATE SKIP LOCKED`,
)

const LATE = [lockLate(LANES.ready), lockLate(LANES.blocked)]
/** Jobs that a limit blocks would be claimed last. */
const SURPLUS = [lockSurplus(LANES.blocked), lockSurplus(LANES.ready)]

/** Locks jobs of both lanes, up to `limit` in all. */
async function lockOf(
  at: At,
  statements: readonly Statement[],
  values: readonly Value[],
  limit: number,
): Promise<Read[]> {
  const reads: Read[] = []
  for (const text of statements) {
    reads.push(...(await lockSound(at, text, ...values, limit - reads.length)))
  }
  return reads
}

export const SHED = {
  lockOverdue: (at: At, limit: number) =>
    lockSound(at, LOCK_OVERDUE, at.now, at.machines.known, limit),
  async deadlinesByFacts({ session }: At, reads: readonly Read[]) {
    const deadlines: (number | null)[] = []
    for (const { job } of reads) {
      deadlines.push((await asOf(session, job.id, job.seq))?.deadlineAt ?? null)
    }
    return deadlines
  },
  limitedQueues: ({ session }: At) => session.query<LimitedQueue>(SELECT_LIMITED),
  countReady: ({ session }: At, queue: string, bound: number) => countReady(session, queue, bound),
  lockLate: (at: At, queue: string, before: number, limit: number) =>
    lockOf(at, LATE, [queue, before, at.machines.known], limit),
  lockSurplus: (at: At, queue: string, limit: number) =>
    lockOf(at, SURPLUS, [queue, arrayOf(failedWhenFull(at.machines))], limit),
}
