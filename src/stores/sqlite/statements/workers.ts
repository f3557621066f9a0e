/** The rows of workers. A row that is not refreshed shows that its worker is gone. */
import type { WorkerReport } from '../../contract/job-types.ts'
import type { WorkerRow } from '../../contract/store.ts'
import type { At } from './at.ts'

/** `ahead_ms` is file time less the wall time of the process; PostgreSQL has one clock. */
const UPSERT = `
  INSERT INTO pawl_workers (id, state, started_at, seen_at, info, ahead_ms)
  VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (id) DO UPDATE SET state = excluded.state, seen_at = excluded.seen_at,
    info = excluded.info, ahead_ms = excluded.ahead_ms`

const SELECT = `
  SELECT id, state, started_at AS startedAt, seen_at AS seenAt, info
  FROM pawl_workers ORDER BY id`

export const WORKERS = {
  reportWorker({ connection, clock, now }: At, { id, state, info }: WorkerReport) {
    connection.run(UPSERT, id, state, now, now, info, clock.aheadInside() ?? null)
  },
  removeWorker({ connection }: At, id: string) {
    connection.run('DELETE FROM pawl_workers WHERE id = ?', id)
  },
  workers: ({ connection }: At) => connection.all<WorkerRow>(SELECT),
}
