/** Migration of many jobs on request: the result for each job of a page. */
import { NOTE_MAX, name as nameRule, text } from '../core/checks.ts'
import { CommandInvalid, type PawlError } from '../core/errors.ts'
import type { Context } from '../core/job/commands.ts'
import type { Fact } from '../core/job/facts.ts'
import type { Job } from '../core/job/job.ts'
import type { Requester } from './contract/store.ts'
import { endOf, followRoute, type Machines, type Migrated, type Route } from './machines.ts'

/** Which jobs are to follow a later version of their lifecycle. */
export interface MigrationRequest {
  readonly lifecycle: string
  readonly to: number
  /** The cursor of the last page; from the beginning if absent. */
  readonly after?: string
  /** Return the results and write nothing. */
  readonly dryRun?: boolean
}

/** A job of an earlier version, and the result of its migration. */
export interface Migration {
  readonly jobId: string
  readonly from: { readonly version: number; readonly state: string }
  /** Absent if the job was not migrated. */
  readonly to?: { readonly version: number; readonly state: string }
  /** Why it was not migrated. */
  readonly error?: PawlError
  /** The job after the migration, and the facts of it. */
  readonly job?: Job
  readonly facts?: readonly Fact[]
}

/** How many rows one transaction reads. */
export const MIGRATION_WINDOW = 1000

/**
 * Throws `CommandInvalid` if a request is not valid. A migration needs an operator and a reason.
 */
export function checkMigration(
  { lifecycle, to, after }: MigrationRequest,
  { actor, operator, note }: Requester,
  cursor: RegExp,
): void {
  const rules: [string, string | undefined][] = [
    ['lifecycle', nameRule(lifecycle)],
    ['to', Number.isSafeInteger(to) && to > 0 ? undefined : 'must be a version'],
    ['after', after === undefined || cursor.test(after) ? undefined : 'must be a cursor'],
    ['actor', actor === 'operator' ? undefined : 'must be operator'],
    ['operator', nameRule(operator)],
    ['note', text(note, NOTE_MAX)],
  ]
  const broken = rules.find(([, why]) => why !== undefined)
  if (broken !== undefined) throw new CommandInvalid(broken[0], broken[1] as string)
}

/** The routes to a version from every earlier one that the store has. */
export class MigrationPlan {
  readonly #routes: ReadonlyMap<number, Route | PawlError>

  /** Throws `LifecycleUnknown` if the store does not have the version. */
  constructor(machines: Machines, { lifecycle: name, to }: MigrationRequest) {
    machines.stored(name, to)
    const earlier = machines.rows.filter((row) => row.name === name && row.version < to)
    this.#routes = new Map(
      earlier.map(({ id, version }) => [id, machines.routeBetween(name, version, to)]),
    )
  }

  /** The numbers of the earlier versions. */
  get machines(): number[] {
    return [...this.#routes.keys()]
  }

  routeOf(machine: number): Route | PawlError {
    return this.#routes.get(machine) as Route | PawlError
  }
}

/** The result for one job. */
export interface Planned {
  readonly migration: Migration
  /** Absent if the job is refused. */
  readonly migrated?: Migrated
}

/** Decides on one job of a page. */
export function planMigration(route: Route | PawlError, job: Job, context: Context): Planned {
  const { id, lifecycleVersion: version, state } = job
  const found = { jobId: id, from: { version, state } }
  if (!('hops' in route)) return { migration: { ...found, error: route } }
  const migrated = followRoute(route, job, context)
  if ('kind' in migrated) return { migration: { ...found, error: migrated.error } }
  const to = { version: endOf(route).lifecycle.version, state: migrated.job.state }
  return { migration: { ...found, to, job: migrated.job, facts: migrated.facts }, migrated }
}
