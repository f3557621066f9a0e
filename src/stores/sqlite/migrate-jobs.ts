/** Migrates live jobs of earlier versions of a lifecycle, a window of rows at a time. */
import { LANES } from '../../core/job/lanes.ts'
import { contextOf } from '../asker.ts'
import { endOf, type Route } from '../machines.ts'
import {
  MIGRATION_WINDOW,
  type Migration,
  MigrationPlan,
  type MigrationRequest,
  planMigration,
} from '../migration.ts'
import { toJob } from '../rows.ts'
import type { Asker, Page } from '../store.ts'
import { Changes } from '../verbs/changes.ts'
import { writeChanges } from './apply.ts'
import type { Connection } from './connect.ts'
import type { NumberedRow, Shared } from './context.ts'
import { refreshMachines } from './machines.ts'

/** The window is chosen by number alone, so that rare matches cannot make a statement long. */
const SELECT_WINDOW = `
  SELECT max(rid) AS last, count(*) AS rows
  FROM (SELECT rid FROM pawl_jobs WHERE rid > ? ORDER BY rid LIMIT ${MIGRATION_WINDOW})`

const SELECT_JOBS = `
  SELECT * FROM pawl_jobs
  WHERE rid > ?1 AND rid <= ?2 AND lane <> ${LANES.ended}
    AND machine IN (SELECT value FROM json_each(?3))
  ORDER BY rid`

/** One window. */
export function migrateJobs(
  shared: Shared,
  connection: Connection,
  now: number,
  request: MigrationRequest,
  asker: Asker,
): Page<Migration> {
  refreshMachines(connection, shared.machines)
  const plan = new MigrationPlan(shared.machines, request)
  const after = Number(request.after ?? 0)
  const window = connection.get<{ last: number | null; rows: number }>(SELECT_WINDOW, after)
  const last = window?.last ?? after
  const machines = JSON.stringify(plan.machines)
  const rows = connection.all<NumberedRow>(SELECT_JOBS, after, last, machines)
  const changes = new Changes({ environment: shared.environment, now })
  const items = rows.map((row): Migration => {
    const { name, version } = shared.machines.rows.find(({ id }) => id === row.machine) as Named
    const job = toJob(row, { name, version })
    const route = plan.routeOf(row.machine)
    const context = contextOf(shared.environment, asker, now)
    const { migration, migrated } = planMigration(route, job, context)
    if (migrated !== undefined && !request.dryRun) {
      const { lifecycle } = endOf(route as Route)
      const read = { ref: row.rid, job, lifecycle, cancelAskedAt: row.cancel_asked_at }
      changes.migrate(read, route as Route, migrated)
    }
    return migration
  })
  writeChanges(connection, changes)
  const isEnd = (window?.rows ?? 0) < MIGRATION_WINDOW
  return { items, ...(!isEnd && { next: String(last) }) }
}

interface Named {
  readonly name: string
  readonly version: number
}
