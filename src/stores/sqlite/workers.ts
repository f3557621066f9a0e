/** What workers tell of themselves; a row that is not refreshed says that its worker is gone. */
import type { WorkerRow } from '../store.ts'
import type { Connection } from './connect.ts'

const UPSERT = `
  INSERT INTO pawl_workers (id, state, started_at, seen_at, info, ahead_ms)
  VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (id) DO UPDATE SET state = excluded.state, seen_at = excluded.seen_at,
    info = excluded.info, ahead_ms = excluded.ahead_ms`

/** Notes that a worker is alive; `aheadMs` is file time less the wall time of its process. */
export function reportWorker(
  connection: Connection,
  now: number,
  { id, state, info }: Pick<WorkerRow, 'id' | 'state' | 'info'>,
  aheadMs: number | undefined,
): void {
  connection.run(UPSERT, id, state, now, now, info, aheadMs ?? null)
}

/** Forgets a worker that has stopped. */
export function removeWorker(connection: Connection, id: string): void {
  connection.run('DELETE FROM pawl_workers WHERE id = ?', id)
}

/** Every worker that has told of itself and did not sign off. */
export function listWorkers(connection: Connection): WorkerRow[] {
  return connection.all<WorkerRow>(
    `SELECT id, state, started_at AS startedAt, seen_at AS seenAt, info
     FROM pawl_workers ORDER BY id`,
  )
}
