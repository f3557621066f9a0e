/** Windows of jobs that may have to be migrated. */
import { LANES } from '../../../core/job/lanes.ts'
import { MIGRATION_WINDOW } from '../../migration.ts'
import type { JobWindow } from '../../verbs/operations.ts'
import type { LockedRow } from '../../verbs/reading.ts'
import { statement } from '../connect.ts'
import { arrayOf } from '../rows-at-once.ts'
import type { At } from './at.ts'

const FIRST = '00000000-0000-0000-0000-000000000000'

/** The window is chosen by id alone, so that rare matches cannot make a statement long. */
const SELECT_WINDOW = statement(
  (s) => `
  SELECT id FROM ${s}.jobs WHERE id > $1 ORDER BY id LIMIT ${MIGRATION_WINDOW}`,
)

/** By the ids of the window: a job that is inserted into it meanwhile belongs to a later call. */
const LOCK_JOBS = statement(
  (s) => `
  SELECT * FROM ${s}.jobs
  WHERE id = ANY ($1::uuid[]) AND lane <> ${LANES.ended} AND machine = ANY ($2::int[])
  ORDER BY id FOR UPDATE`,
)

export const MIGRATE = {
  async lockWindow(
    { session }: At,
    cursor: string | undefined,
    machines: readonly number[],
  ): Promise<JobWindow> {
    const window = await session.query<{ id: string }>(SELECT_WINDOW, [cursor ?? FIRST])
    const ids = arrayOf(window.map(({ id }) => id))
    const found = await session.query<LockedRow>(LOCK_JOBS, [ids, arrayOf(machines)])
    const rows = found.map((row) => ({ row, ref: row.id }))
    const last = window[window.length - 1]?.id
    const isLast = window.length < MIGRATION_WINDOW || last === undefined
    return { rows, ...(!isLast && { next: last }) }
  },
}
