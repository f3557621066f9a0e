/** Pausing and resuming queues: nothing of a paused queue is claimed; what runs, runs on. */
import type { Asker } from '../store.ts'
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
