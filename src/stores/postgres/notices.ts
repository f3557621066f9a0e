/** Puts notices into the outbox, with the facts that they tell of; see `../notices.ts`. */
import { NOTICE, type NoticeRow } from '../notices.ts'
import { type Session, statement } from './connect.ts'
import { arraysOf, type Column, namesOf, unnest } from './rows-at-once.ts'

const ROW: readonly Column<NoticeRow>[] = [
  ['job', 'uuid', ({ jobId }) => jobId],
  ['n', 'int', ({ seq }) => seq],
  ['payload', 'text', ({ payload }) => payload],
  ['run_at', 'bigint', ({ at }) => at],
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
