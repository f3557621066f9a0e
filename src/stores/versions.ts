/**
 * The lifecycles by which jobs of a store can be read: those of this process, and other versions of
 * the store. For readers of jobs; the stores themselves decide by `machines.ts`.
 */
import type { PawlError } from '../core/errors.ts'
import { LifecycleUnknown } from '../core/errors.ts'
import type { Context } from '../core/job/commands.ts'
import type { Job } from '../core/job/job.ts'
import { restoreLifecycle } from '../core/lifecycles/definition.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { Store } from './contract/store.ts'
import { endOf, followRoute, Machines, type Route } from './machines.ts'

/** A job as this process decides on it. */
export interface JobAsDecided {
  readonly job: Job
  readonly lifecycle: Lifecycle
}

/** The versions of lifecycles in one store, as they were when it was asked. */
export class Versions {
  readonly #own: readonly Lifecycle[]
  readonly #machines: Machines
  /** Every version that the store has and this process has not. */
  readonly stored: readonly Lifecycle[]

  /** Made by `versionsOf`. */
  constructor(own: readonly Lifecycle[], machines: Machines) {
    this.#own = own
    this.#machines = machines
    this.stored = machines.rows.flatMap(({ name, version, definition }) => {
      if (machines.find(name, version) !== undefined) return []
      return restoreLifecycle(name, version, definition) ?? []
    })
  }

  /** Those of this process, and those whose jobs it migrates when it touches them. */
  get usable(): readonly Lifecycle[] {
    return [...this.#own, ...[...this.#machines.routes.values()].map(({ before }) => before)]
  }

  /** The route of a job that this process would migrate; `undefined` for any other. */
  routeOf({ lifecycle, lifecycleVersion }: Job): Route | undefined {
    return [...this.#machines.routes.values()].find(
      ({ before }) => before.name === lifecycle && before.version === lifecycleVersion,
    )
  }

  /** The version of this process that decides on a job; `undefined` if it has none. */
  lifecycleFor(job: Job): Lifecycle | undefined {
    const own = this.#machines.find(job.lifecycle, job.lifecycleVersion)
    const route = own === undefined ? this.routeOf(job) : undefined
    return own ?? (route && endOf(route).lifecycle)
  }

  /** The job by the version that decides on it, migrated if need be, or why there is none. */
  decided(job: Job, context: Context): JobAsDecided | PawlError {
    const lifecycle = this.lifecycleFor(job)
    const route = this.routeOf(job)
    if (lifecycle === undefined) return new LifecycleUnknown(job.lifecycle, job.lifecycleVersion)
    // A succeeded job never changes: it can be copied only.
    if (route === undefined || job.outcome === 'succeeded') return { job, lifecycle }
    const migrated = followRoute(route, job, context)
    return 'kind' in migrated ? migrated.error : { job: migrated.job, lifecycle }
  }
}

/** Reads the versions of a store. */
export async function versionsOf(
  store: Store,
  lifecycles: readonly Lifecycle[],
): Promise<Versions> {
  const machines = new Machines(lifecycles)
  machines.load(await store.listMachines())
  return new Versions(lifecycles, machines)
}
