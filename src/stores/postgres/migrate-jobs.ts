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
import type { LockedRow } from '../verbs/reading.ts'
import { writeChanges } from './apply.ts'
import { type Session, statement } from './connect.ts'
import type { Shared } from './context.ts'
import { refreshMachines } from './machines.ts'
import { arrayOf } from './rows-at-once.ts'

const FIRST = '00000000-0000-0000-0000-000000000000'

/** The window is chosen by id alone, so that rare matches cannot make a statement long. */
const SELECT_WINDOW = statement(
  (s) => `
  SELECT id FROM ${s}.jobs WHERE id > $1 ORDER BY id LIMIT ${MIGRATION_WINDOW}`,
)

const LOCK_JOBS = statement(
  (s) => `
  SELECT * FROM ${s}.jobs
  WHERE id = ANY ($1::uuid[]) AND lane <> ${LANES.ended} AND machine = ANY ($2::int[])
  ORDER BY id FOR UPDATE`,
)

/** One window; must be called inside a transaction. */
export async function migrateJobs(
  shared: Shared,
  session: Session,
  now: number,
  request: MigrationRequest,
  asker: Asker,
): Promise<Page<Migration>> {
  await refreshMachines(session, shared.machines)
  const plan = new MigrationPlan(shared.machines, request)
  const window = await session.query<{ id: string }>(SELECT_WINDOW, [request.after ?? FIRST])
  const ids = arrayOf(window.map(({ id }) => id))
  const rows = await session.query<LockedRow>(LOCK_JOBS, [ids, arrayOf(plan.machines)])
  const changes = new Changes({ environment: shared.environment, now })
  const items = rows.map((row): Migration => {
    const { name, version } = shared.machines.rows.find(({ id }) => id === row.machine) as Named
    const job = toJob(row, { name, version })
    const route = plan.routeOf(row.machine)
    const context = contextOf(shared.environment, asker, now)
    const { migration, migrated } = planMigration(route, job, context)
    if (migrated !== undefined && !request.dryRun) {
      const { lifecycle } = endOf(route as Route)
      const read = { ref: row.id, job, lifecycle, cancelAskedAt: row.cancel_asked_at }
      changes.migrate(read, route as Route, migrated)
    }
    return migration
  })
  await writeChanges(session, changes)
  const last = window[window.length - 1]?.id
  const isEnd = window.length < MIGRATION_WINDOW || last === undefined
  return { items, ...(!isEnd && { next: last }) }
}

interface Named {
  readonly name: string
  readonly version: number
}
