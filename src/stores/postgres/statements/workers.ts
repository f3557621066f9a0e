/** The rows of workers. A row that is not refreshed shows that its worker is gone. */
import type { WorkerReport } from '../../contract/job-types.ts'
import type { WorkerRow } from '../../contract/store.ts'
import { statement } from '../connect.ts'
import type { At } from './at.ts'
import { declareJobTypes } from './job-types.ts'

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

export const WORKERS = {
  async reportWorker(at: At, { id, state, info, declared }: WorkerReport) {
    await at.session.query(UPSERT, [id, state, at.now, info])
    if (declared !== undefined) await declareJobTypes(at, id, declared)
  },
  async removeWorker({ session }: At, id: string) {
    await session.query(DELETE, [id])
  },
  workers: ({ session }: At) => session.query<WorkerRow>(SELECT),
}
