/** Notices in the outbox; `../../notices.ts` has the rules. */
import {
  NOT_RECEIVED,
  NOTICE,
  NOTICE_AGE_MAX_MS,
  NOTICES_MAX,
  type NoticeRow,
  noticeMark,
  type UndeliveredNotices,
} from '../../notices.ts'
import type { Connection } from '../connect.ts'
import type { At } from './at.ts'

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

const COUNT_OVERDUE = `
  SELECT count(*) AS overdue, min(run_at) AS since FROM (SELECT run_at ${OVERDUE})`

const COUNT_PARKED = `
  SELECT count(*) AS parked FROM (
    SELECT type FROM pawl_outbox INDEXED BY pawl_outbox_parked
    WHERE state = 'parked' ORDER BY eid DESC LIMIT ${NOTICES_MAX}
  ) WHERE type = '${NOTICE}'`

export const NOTICES = {
  parkOldNotices({ connection, now }: At) {
    connection.run(PARK_OLD, now - NOTICE_AGE_MAX_MS, now)
  },
  undeliveredNotices({ connection }: At, before: number): UndeliveredNotices {
    type Overdue = Omit<UndeliveredNotices, 'parked'>
    const { overdue, since } = connection.get<Overdue>(COUNT_OVERDUE, before) as Overdue
    const { parked } = connection.get<{ parked: number }>(COUNT_PARKED) as { parked: number }
    return { overdue, since, parked }
  },
}
