/** Queues: what is in them; and pausing, so that nothing is claimed while what runs, runs on. */
import { LANES } from '../../core/job/lanes.ts'
import { type QueueCount, type QueueRow, queuesOf } from '../queue-info.ts'
import type { Asker, QueueInfo } from '../store.ts'
import { type Session, statement } from './connect.ts'

const SET_PAUSED = statement(
  (s) => `
  INSERT INTO ${s}.queues (name, paused_at, paused_by) VALUES ($1, $2, $3)
  ON CONFLICT (name) DO UPDATE SET paused_at = excluded.paused_at, paused_by = excluded.paused_by`,
)

/** Pauses a queue, or with no time resumes it. */
export async function setPaused(
  session: Session,
  queue: string,
  pausedAt: number | null,
  asker: Asker,
): Promise<void> {
  await session.query(SET_PAUSED, [queue, pausedAt, asker.operator ?? asker.actor])
}

/** A lane stands in the text, because only then can a partial index be used. */
const COUNT_BY_QUEUE = statement((s) =>
  [
    ...Object.values(LANES)
      .filter((lane) => lane !== LANES.ended)
      .map(
        (lane) => `
        SELECT queue, ${lane} AS lane, count(*) AS jobs, min(run_at) AS first
        FROM ${s}.jobs WHERE lane = ${lane} GROUP BY queue`,
      ),
    `SELECT queue, ${LANES.ended}, sum(jobs)::bigint, NULL FROM ${s}.ended_counts GROUP BY queue`,
  ].join(' UNION ALL '),
)
const SELECT_QUEUES = statement((s) => `SELECT name, paused_at, paused_by FROM ${s}.queues`)

/** Every queue, by name. */
export async function listQueues(session: Session): Promise<QueueInfo[]> {
  const counts = await session.query<QueueCount>(COUNT_BY_QUEUE)
  return queuesOf(counts, await session.query<QueueRow>(SELECT_QUEUES))
}
