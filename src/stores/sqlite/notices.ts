/** Notices in the outbox: written with their facts, parked by age, counted; see `../notices.ts`. */
import {
  NOT_RECEIVED,
  NOTICE,
  NOTICE_AGE_MAX_MS,
  NOTICES_MAX,
  type NoticeRow,
  noticeMark,
  type UndeliveredNotices,
} from '../notices.ts'
import type { Connection } from './connect.ts'

const INSERT = `
  INSERT INTO pawl_outbox (job, type, name, n, payload, run_at, mark)
  VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?6)`

/** Adds the notice of a fact on the job with this number. */
export function insertNotice(connection: Connection, rid: number, notice: NoticeRow): void {
  const { seq, payload, at } = notice
  connection.run(INSERT, rid, NOTICE, seq, payload, at, noticeMark(notice))
}

const OVERDUE = `FROM pawl_outbox
  WHERE state = 'pending' AND type = '${NOTICE}' AND run_at <= ?1
  ORDER BY run_at, eid LIMIT ${NOTICES_MAX}`

const PARK_OLD = `
  UPDATE pawl_outbox SET state = 'parked', error = '${NOT_RECEIVED}', run_at = ?2, claim = NULL
  WHERE eid IN (SELECT eid ${OVERDUE})`

/** Parks notices that nobody has tried to deliver for too long. */
export function parkOldNotices(connection: Connection, now: number): void {
  connection.run(PARK_OLD, now - NOTICE_AGE_MAX_MS, now)
}

const COUNT_OVERDUE = `
  SELECT count(*) AS overdue, min(run_at) AS since FROM (SELECT run_at ${OVERDUE})`

const COUNT_PARKED = `
  SELECT count(*) AS parked FROM (
    SELECT type FROM pawl_outbox INDEXED BY pawl_outbox_parked
    WHERE state = 'parked' ORDER BY eid DESC LIMIT ${NOTICES_MAX}
  ) WHERE type = '${NOTICE}'`

/** Counts notices that were due before a time, and the parked ones among the newest effects. */
export function undeliveredNotices(connection: Connection, before: number): UndeliveredNotices {
  type Overdue = Omit<UndeliveredNotices, 'parked'>
  const { overdue, since } = connection.get<Overdue>(COUNT_OVERDUE, before) as Overdue
  const { parked } = connection.get<{ parked: number }>(COUNT_PARKED) as { parked: number }
  return { overdue, since, parked }
}
