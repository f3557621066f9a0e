/** Jobs whose time has come. */
import { LANES } from '../../../core/job/lanes.ts'
import type { NextDue } from '../../gate-rows.ts'
import { statement } from '../connect.ts'
import type { At } from './at.ts'
import { lockSound } from './sound.ts'

/** Jobs of a lifecycle that this process does not know are left to a process that does. */
const LOCK_DUE = statement(
  (s) => `
  SELECT * FROM ${s}.jobs
  WHERE lane = ${LANES.waiting} AND run_at <= $1 AND machine = ANY ($2::int[])
  ORDER BY run_at, id LIMIT $3 FOR UPDATE SKIP LOCKED`,
)

/** The same jobs as above: a worker would look all the time at one that it leaves to others. */
const SELECT_NEXT_DUE = statement(
  (s) => `
  SELECT
    (SELECT run_at FROM ${s}.jobs WHERE lane = ${LANES.waiting} AND machine = ANY ($1::int[])
      ORDER BY run_at, id LIMIT 1) AS job,
    (SELECT open_at FROM ${s}.gates WHERE open_at IS NOT NULL ORDER BY open_at LIMIT 1) AS gate`,
)

export const PROMOTE = {
  lockDue: (at: At, limit: number) => lockSound(at, LOCK_DUE, at.now, at.machines.known, limit),
  nextDue: async ({ session, machines }: At) =>
    (await session.query<NextDue>(SELECT_NEXT_DUE, [machines.known]))[0],
}
