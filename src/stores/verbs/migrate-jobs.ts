/** Migrates live jobs of earlier versions of a lifecycle, a window of rows at a time. */

import { contextOf } from '../contract/requester.ts'
import type { Page, Requester } from '../contract/store.ts'
import { endOf, type Route } from '../machines.ts'
import {
  type Migration,
  MigrationPlan,
  type MigrationRequest,
  planMigration,
} from '../migration.ts'
import { toJob } from '../rows.ts'
import { Changes } from './changes.ts'
import type { Tx, Verb } from './operations.ts'

/** Migrates the jobs of one window. */
export function* migrateJobs(
  tx: Tx,
  request: MigrationRequest,
  requester: Requester,
): Verb<Page<Migration>> {
  const { environment, machines, now } = tx
  yield* tx.refreshMachines()
  const plan = new MigrationPlan(machines, request)
  const { rows, next } = yield* tx.lockWindow(request.after, plan.machines)
  const changes = new Changes(tx)
  const items = rows.map(({ row, ref }): Migration => {
    const { name, version } = machines.rows.find(({ id }) => id === row.machine) as Named
    const job = toJob(row, { name, version })
    const route = plan.routeOf(row.machine)
    const context = contextOf(environment, requester, now)
    const { migration, migrated } = planMigration(route, job, context)
    if (migrated !== undefined && !request.dryRun) {
      const { lifecycle } = endOf(route as Route)
      const read = { ref, job, lifecycle, cancelAskedAt: row.cancel_asked_at }
      changes.migrate(read, route as Route, migrated)
    }
    return migration
  })
  yield* tx.write(changes)
  return { items, ...(next !== undefined && { next }) }
}

interface Named {
  readonly name: string
  readonly version: number
}
