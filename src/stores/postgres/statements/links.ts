/** How the ends of jobs change links, on PostgreSQL. */
import { endedStateSql, LINK_STATES, type LinkChanges, NEEDS } from '../../link-rows.ts'
import { type Session, statement } from '../connect.ts'
import { arrayOf } from '../rows-at-once.ts'

const { open, failedNew, failed, orphaned, reopened } = LINK_STATES
const OPEN = `state IN (${open}, ${reopened})`

/** Links have no number until the job has ended; also those of parents that have ended before. */
const END = statement(
  (s) => `
  UPDATE ${s}.links SET state = ${endedStateSql('done.outcome')}, seq = done.seq
  FROM unnest($1::uuid[], $2::text[], $3::int[]) AS done (id, outcome, seq)
  WHERE links.awaited = done.id AND links.awaited = ANY ($1::uuid[]) AND links.seq IS NULL`,
)
/** A job that must fail has failed once, and one that must end has ended once: both stay so. */
const REOPEN = statement(
  (s) => `
  UPDATE ${s}.links SET state = ${reopened}, seq = NULL
  WHERE awaited = ANY ($1::uuid[]) AND need = ${NEEDS.success}
    AND state IN (${failedNew}, ${failed})`,
)
const ORPHAN = statement(
  (s) => `
  UPDATE ${s}.links SET state = ${orphaned}
  WHERE waiter = ANY ($1::uuid[]) AND need = ${NEEDS.owned} AND ${OPEN}`,
)

/** Marks the links of jobs that have ended, or were redriven; see `../../verbs/changes.ts`. */
export async function writeLinks(session: Session, changes: LinkChanges): Promise<void> {
  const { ended, revived, orphaning } = changes
  if (ended.length > 0) {
    await session.query(END, [
      arrayOf(ended.map(({ id }) => id)),
      arrayOf(ended.map(({ outcome }) => outcome)),
      arrayOf(ended.map(({ seq }) => seq)),
    ])
  }
  if (revived.length > 0) await session.query(REOPEN, [arrayOf(revived)])
  if (orphaning.length > 0) await session.query(ORPHAN, [arrayOf(orphaning)])
}
