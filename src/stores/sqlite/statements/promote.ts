/** Jobs whose time has come. */
import { LANES } from '../../../core/job/lanes.ts'
import type { NextDue } from '../../gate-rows.ts'
import type { At } from './at.ts'
import { lockSound } from './sound.ts'

/** Jobs of a lifecycle that this process does not know are left to a process that does. */
const SELECT_DUE = `
  SELECT * FROM pawl_jobs
  WHERE lane = ${LANES.waiting} AND run_at <= ?1 AND machine IN (SELECT value FROM json_each(?2))
  ORDER BY run_at, rid LIMIT ?3`

/** The same jobs as above: a worker would look all the time at one that it leaves to others. */
const SELECT_NEXT_DUE = `
  SELECT
    (SELECT run_at FROM pawl_jobs
      WHERE lane = ${LANES.waiting} AND machine IN (SELECT value FROM json_each(?1))
      ORDER BY run_at, rid LIMIT 1) AS job,
    (SELECT open_at FROM pawl_gates WHERE open_at IS NOT NULL ORDER BY open_at LIMIT 1) AS gate`

export const PROMOTE = {
  lockDue: (at: At, limit: number) => lockSound(at, SELECT_DUE, at.now, at.machines.known, limit),
  nextDue: ({ connection, machines }: At) =>
    connection.get<NextDue>(SELECT_NEXT_DUE, machines.known),
}
