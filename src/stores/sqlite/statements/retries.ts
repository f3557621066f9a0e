/** Retries that wait; see `../../waiting-retries.ts`. */
import { LANES } from '../../../core/job/lanes.ts'
import { WAITING_LOOK_MAX, WaitingRetries, type WaitingRow } from '../../waiting-retries.ts'
import type { Connection } from '../connect.ts'

const SELECT_WAITING = `
  SELECT queue, failures, crashes FROM pawl_jobs
  WHERE lane = ${LANES.waiting} AND run_at > ? ORDER BY run_at, rid LIMIT ${WAITING_LOOK_MAX}`

/** Counts them among the jobs that are due next. */
export function findWaitingRetries(connection: Connection, now: number): WaitingRetries {
  return new WaitingRetries(connection.all<WaitingRow>(SELECT_WAITING, now))
}
