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
import { type Session, statement } from '../connect.ts'
import { arraysOf, type Column, namesOf, unnest } from '../rows-at-once.ts'
import type { At } from './at.ts'

const ROW: readonly Column<NoticeRow>[] = [
  ['job', 'uuid', ({ jobId }) => jobId],
  ['n', 'int', ({ seq }) => seq],
  ['payload', 'text', ({ payload }) => payload],
  ['run_at', 'bigint', ({ at }) => at],
  ['mark', 'text', noticeMark],
]

const INSERT = statement(
  (s) => `
  INSERT INTO ${s}.outbox (type, name, ${namesOf(ROW)})
  SELECT '${NOTICE}', '${NOTICE}', ${namesOf(ROW)} FROM ${unnest(ROW, 1, 'notice')}
  ORDER BY place`,
)

/** Adds the notices of facts. */
export async function insertNotices(
  session: Session,
  notices: readonly NoticeRow[],
): Promise<void> {
  if (notices.length > 0) await session.query(INSERT, arraysOf(ROW, notices))
}

const overdue = (s: string) => `FROM ${s}.outbox
    WHERE state = 'pending' AND type = '${NOTICE}' AND run_at <= $1
    ORDER BY run_at, eid LIMIT ${NOTICES_MAX}`

/** Rows that another process is parking or delivering are left to it. */
const PARK_OLD = statement(
  (s) => `
  UPDATE ${s}.outbox SET state = 'parked', error = '${NOT_RECEIVED}', run_at = $2, claim = NULL
  WHERE eid = ANY (ARRAY (SELECT eid ${overdue(s)} FOR UPDATE SKIP LOCKED))`,
)

const COUNT = statement(
  (s) => `
  WITH overdue AS (SELECT run_at ${overdue(s)}),
  parked AS (
    SELECT type FROM ${s}.outbox WHERE state = 'parked' ORDER BY eid DESC LIMIT ${NOTICES_MAX}
  )
  SELECT (SELECT count(*)::int FROM overdue) AS overdue, (SELECT min(run_at) FROM overdue) AS since,
    (SELECT count(*)::int FROM parked WHERE type = '${NOTICE}') AS parked`,
)

export const NOTICES = {
  async parkOldNotices({ session, now }: At) {
    await session.query(PARK_OLD, [now - NOTICE_AGE_MAX_MS, now])
  },
  async undeliveredNotices({ session }: At, before: number) {
    const [counts] = await session.query<UndeliveredNotices>(COUNT, [before])
    return counts as UndeliveredNotices
  },
}
