/** What workers tell of themselves; a row that is not refreshed says that its worker is gone. */
import type { WorkerRow } from '../store.ts'
import { type Session, statement } from './connect.ts'

const UPSERT = statement(
  (s) => `
  INSERT INTO ${s}.workers (id, state, started_at, seen_at, info) VALUES ($1, $2, $3, $3, $4)
  ON CONFLICT (id) DO UPDATE
    SET state = excluded.state, seen_at = excluded.seen_at, info = excluded.info`,
)
const DELETE = statement((s) => `DELETE FROM ${s}.workers WHERE id = $1`)
const SELECT = statement(
  (s) => `
  SELECT id, state, started_at AS "startedAt", seen_at AS "seenAt", info
  FROM ${s}.workers ORDER BY id`,
)

/** Notes that a worker is alive. */
export async function reportWorker(
  session: Session,
  now: number,
  { id, state, info }: Pick<WorkerRow, 'id' | 'state' | 'info'>,
): Promise<void> {
  await session.query(UPSERT, [id, state, now, info])
}

/** Forgets a worker that has stopped. */
export async function removeWorker(session: Session, id: string): Promise<void> {
  await session.query(DELETE, [id])
}

/** Every worker that has told of itself and did not sign off. */
export function listWorkers(session: Session): Promise<WorkerRow[]> {
  return session.query<WorkerRow>(SELECT)
}
