/** Retries that wait; see `../../waiting-retries.ts`. */
import { LANES } from '../../../core/job/lanes.ts'
import { WAITING_LOOK_MAX, WaitingRetries, type WaitingRow } from '../../waiting-retries.ts'
import { type Session, statement } from '../connect.ts'

const SELECT_WAITING = statement(
  (s) => `
  SELECT queue, failures, crashes FROM ${s}.jobs
  WHERE lane = ${LANES.waiting} AND run_at > $1 ORDER BY run_at, id LIMIT ${WAITING_LOOK_MAX}`,
)

/** Counts them among the jobs that are due next. */
export async function findWaitingRetries(session: Session, now: number): Promise<WaitingRetries> {
  return new WaitingRetries(await session.query<WaitingRow>(SELECT_WAITING, [now]))
}
