/** Puts notices into the outbox, with the facts that they tell of; see `../notices.ts`. */
import { NOTICE, type NoticeRow } from '../notices.ts'
import type { Connection } from './connect.ts'

const INSERT = `
  INSERT INTO pawl_outbox (job, type, name, n, payload, run_at) VALUES (?1, ?2, ?2, ?3, ?4, ?5)`

/** Adds the notice of a fact on the job with this number. */
export function insertNotice(connection: Connection, rid: number, notice: NoticeRow): void {
  connection.run(INSERT, rid, NOTICE, notice.seq, notice.payload, notice.at)
}
