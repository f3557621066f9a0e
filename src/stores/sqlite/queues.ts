/** Queues: what is in them; and pausing, so that nothing is claimed while what runs, runs on. */
import { LANES } from '../../core/job/lanes.ts'
import { type QueueCount, type QueueRow, queuesOf } from '../queue-info.ts'
import type { Asker, QueueInfo } from '../store.ts'
import type { Connection } from './connect.ts'

const SET_PAUSED = `
  INSERT INTO pawl_queues (name, paused_at, paused_by) VALUES (?, ?, ?)
  ON CONFLICT (name) DO UPDATE SET paused_at = excluded.paused_at, paused_by = excluded.paused_by`

/** Pauses a queue, or with no time resumes it. */
export function setPaused(
  connection: Connection,
  queue: string,
  pausedAt: number | null,
  asker: Asker,
): void {
  connection.run(SET_PAUSED, queue, pausedAt, asker.operator ?? asker.actor)
}

/** A lane stands in the text, because only then can a partial index be used. */
const COUNT_BY_QUEUE = [
  ...Object.values(LANES)
    .filter((lane) => lane !== LANES.ended)
    .map(
      (lane) => `
      SELECT queue, ${lane} AS lane, count(*) AS jobs, min(run_at) AS first
      FROM pawl_jobs WHERE lane = ${lane} GROUP BY queue`,
    ),
  `SELECT queue, ${LANES.ended}, sum(jobs), NULL FROM pawl_ended_counts GROUP BY queue`,
].join(' UNION ALL ')

/** Every queue, by name. */
export function listQueues(connection: Connection): QueueInfo[] {
  return queuesOf(
    connection.all<QueueCount>(COUNT_BY_QUEUE),
    connection.all<QueueRow>('SELECT name, paused_at, paused_by FROM pawl_queues'),
  )
}
