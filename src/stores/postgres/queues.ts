/** Pausing and resuming queues: nothing of a paused queue is claimed; what runs, runs on. */
import type { Asker } from '../store.ts'
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
