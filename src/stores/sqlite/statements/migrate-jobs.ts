/** Windows of jobs that may have to be migrated. */
import { LANES } from '../../../core/job/lanes.ts'
import { MIGRATION_WINDOW } from '../../migration.ts'
import type { JobWindow } from '../../verbs/operations.ts'
import type { NumberedRow } from '../context.ts'
import type { At } from './at.ts'

/** The window is chosen by number alone, so that rare matches cannot make a statement long. */
const SELECT_WINDOW = `
  SELECT max(rid) AS last, count(*) AS rows
  FROM (SELECT rid FROM pawl_jobs WHERE rid > ? ORDER BY rid LIMIT ${MIGRATION_WINDOW})`

const SELECT_JOBS = `
  SELECT * FROM pawl_jobs
  WHERE rid > ?1 AND rid <= ?2 AND lane <> ${LANES.ended}
    AND machine IN (SELECT value FROM json_each(?3))
  ORDER BY rid`

export const MIGRATE = {
  lockWindow(
    { connection }: At,
    cursor: string | undefined,
    machines: readonly number[],
  ): JobWindow {
    const after = Number(cursor ?? 0)
    const window = connection.get<{ last: number | null; rows: number }>(SELECT_WINDOW, after)
    const last = window?.last ?? after
    const found = connection.all<NumberedRow>(SELECT_JOBS, after, last, JSON.stringify(machines))
    const rows = found.map((row) => ({ row, ref: row.rid }))
    const isLast = (window?.rows ?? 0) < MIGRATION_WINDOW
    return { rows, ...(!isLast && { next: String(last) }) }
  },
}
