/** How the ends of jobs change links, on SQLite. */
import { endedStateSql, LINK_STATES, type LinkChanges, NEEDS } from '../../link-rows.ts'
import type { Connection } from '../connect.ts'

const { open, failedNew, failed, orphaned, reopened } = LINK_STATES
const OPEN = `state IN (${open}, ${reopened})`

/** Links have no number until the job has ended; also those of parents that have ended before. */
const END = `
  UPDATE pawl_links SET state = ${endedStateSql('?1')}, seq = ?2 WHERE awaited = ?3 AND seq IS NULL`
/** A job that must fail has failed once, and one that must end has ended once: both stay so. */
const REOPEN = `
  UPDATE pawl_links SET state = ${reopened}, seq = NULL
  WHERE awaited = ? AND need = ${NEEDS.success} AND state IN (${failedNew}, ${failed})`
const ORPHAN = `
  UPDATE pawl_links SET state = ${orphaned} WHERE waiter = ? AND need = ${NEEDS.owned} AND ${OPEN}`

/** Marks the links of jobs that have ended, or were redriven; see `../../verbs/changes.ts`. */
export function writeLinks(connection: Connection, changes: LinkChanges): void {
  for (const { id, outcome, seq } of changes.ended) connection.run(END, outcome, seq, id)
  for (const id of changes.revived) connection.run(REOPEN, id)
  for (const id of changes.orphaning) connection.run(ORPHAN, id)
}
