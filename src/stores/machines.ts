/**
 * The versions of lifecycles that a store keeps, and what this process may do with jobs of each.
 *
 *   known    this process has the code of the version: it works on its jobs as they are
 *   routed   this process does not have it, but mappings (`from`) lead from it to a known one: its
 *            jobs are migrated when a verb changes them
 *   other    its jobs are left alone (rule G9)
 *
 * The store keeps the definition of every version, so that a route can be followed and checked
 * without the code of the versions on it. Beside each definition is its checksum, the mark. A
 * process whose code differs from a definition is refused, unless the definition differs from its
 * mark. In that case something other than Pawl has changed the row, and the code counts.
 */
import { createHash } from 'node:crypto'
import {
  LifecycleUnknown,
  MachineChanged,
  MigrationInvalid,
  type PawlError,
} from '../core/errors.ts'
import type { Context, Fence } from '../core/job/commands.ts'
import { decideMigrate } from '../core/job/decide-migrate.ts'
import type { Decision } from '../core/job/decision.ts'
import { evolve } from '../core/job/evolve.ts'
import type { Fact } from '../core/job/facts.ts'
import type { Job } from '../core/job/job.ts'
import {
  compareDefinitions,
  definitionOf,
  restoreLifecycle,
} from '../core/lifecycles/definition.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import { findMappingProblems } from '../core/lifecycles/migration.ts'
import { MachineDamaged } from './errors.ts'

/** A version of a lifecycle as a store keeps it. */
export interface MachineRow {
  readonly id: number
  readonly name: string
  readonly version: number
  readonly definition: string
  /** Null in rows that an earlier release wrote and no later one has registered again. */
  readonly mark: string | null
}

/** One version on the way of a migration, with its number in the store. */
export interface Hop {
  readonly machine: number
  readonly lifecycle: Lifecycle
}

/**
 * The migrations from a version to a later one; every hop has a mapping of the version before it.
 */
export interface Route {
  /** The version that the jobs follow now. */
  readonly before: Lifecycle
  readonly hops: readonly Hop[]
}

/** The version at the end of a route. */
export function endOf({ hops }: Route): Hop {
  return hops[hops.length - 1] as Hop
}

/** A job after a migration, and the fact of every hop. */
export interface Migrated {
  readonly job: Job
  readonly facts: readonly Fact[]
}

/** Migrates a job along a route; writes nothing. */
export function followRoute(
  { before, hops }: Route,
  job: Job,
  context: Context,
  fence?: Fence,
): Migrated | Extract<Decision, { kind: 'rejected' }> {
  const facts: Fact[] = []
  let [version, migrated] = [before, job]
  for (const { lifecycle } of hops) {
    const decision = decideMigrate(version, lifecycle, migrated, context, fence)
    if (decision.kind === 'rejected') return decision
    const { fact } = decision as { fact: Fact }
    facts.push(fact)
    migrated = evolve(migrated, fact)
    version = lifecycle
  }
  return { job: migrated, facts }
}

/** Numbers and versions of stored lifecycles that can be used; others are damage. */
export const MACHINES_MAX = 10_000
export const VERSION_MAX = 2_147_483_647

/** The condition for rows that can be used, for statements that read them. */
export const USABLE = `id BETWEEN 1 AND ${MACHINES_MAX} AND version BETWEEN 1 AND ${VERSION_MAX}`

/** The row of a lifecycle, with numbers as text, because they may be outside of all bounds. */
export interface RawMachine {
  readonly id: string
  readonly name: string
  readonly version: string
  readonly held: string
  readonly definition: string
  readonly mark: string | null
}

/** A stored lifecycle that differs from the code of this process, and how to restore it. */
export interface MachineFault {
  readonly lifecycle: Lifecycle
  readonly what: string
  /** The number of the row now; null if there is no row. */
  readonly row: string | null
  /** The row after the repair. */
  readonly number: number
  readonly definition: string
}

function isUsable({ id, version }: RawMachine): boolean {
  const isWithin = (text: string, max: number) => Number(text) >= 1 && Number(text) <= max
  return isWithin(id, MACHINES_MAX) && isWithin(version, VERSION_MAX)
}

/**
 * Compares the rows with the code. `numbers` are those by which this process knew its lifecycles,
 * `taken` those that rows of jobs refer to.
 */
export function machineFaults(
  rows: readonly RawMachine[],
  lifecycles: readonly Lifecycle[],
  numbers: (lifecycle: Lifecycle) => number | undefined,
  taken: readonly number[],
): MachineFault[] {
  const used = new Set([...taken, ...rows.filter(isUsable).map(({ id }) => Number(id))])
  const next = () => {
    let number = 1
    while (used.has(number)) number++
    used.add(number)
    return number
  }
  return lifecycles.flatMap((lifecycle): MachineFault[] => {
    const { name, version } = lifecycle
    const own = definitionOf(lifecycle)
    const row = rows.find((one) => one.name === name && one.version === String(version))
    if (row === undefined) {
      const number = numbers(lifecycle) ?? next()
      const there = rows.find(({ id }) => id === String(number))
      const what = there ? `its row says "${there.name}" version ${there.version}` : 'it has no row'
      return [{ lifecycle, what, row: there?.id ?? null, number, definition: own }]
    }
    const restored = { lifecycle, row: row.id, number: Number(row.id), definition: own }
    if (!isUsable(row)) {
      const number = numbers(lifecycle) ?? next()
      return [{ ...restored, what: `its number is ${row.id}`, number }]
    }
    const compared = compareDefinitions(row.definition, lifecycle)
    if (compared.kind === 'damaged' || compared.kind === 'changed') {
      return [{ ...restored, what: 'its definition is not the one that was stored' }]
    }
    if (row.mark !== null && row.mark !== machineMark(row.definition)) {
      const what = 'its definition does not agree with its mark'
      return [{ ...restored, what, definition: row.definition }]
    }
    // Mappings that another release added stay as they are.
    if (row.held === lifecycle.held) return []
    return [{ ...restored, what: `its held state is "${row.held}"`, definition: row.definition }]
  })
}

/** The checksum of a definition, for its row and for people to compare. */
export function machineMark(definition: string): string {
  return createHash('sha256').update(definition).digest('hex').slice(0, 16)
}

/**
 * The definition that the row of a lifecycle gets when a process with this code opens the store;
 * `undefined` if the row stays. Throws `MachineChanged` if the code was changed without a new
 * version.
 */
export function definitionAfter(
  { definition: stored, mark }: Pick<MachineRow, 'definition' | 'mark'>,
  lifecycle: Lifecycle,
): string | undefined {
  const compared = compareDefinitions(stored, lifecycle)
  if (compared.kind === 'extended') return compared.definition
  if (compared.kind === 'same') return mark === null ? stored : undefined
  if (compared.kind === 'damaged') return undefined
  const [own, found] = [machineMark(definitionOf(lifecycle)), machineMark(stored)]
  // Something other than Pawl has changed it: the doctor restores it from the code.
  if (mark !== null && mark !== found) return undefined
  const hashes = { stored: found, own }
  throw new MachineChanged(lifecycle.name, lifecycle.version, compared.parts, hashes)
}

/** The lifecycles of this process and of the store, by their numbers in the store. */
export class Machines {
  readonly #own: readonly Lifecycle[]
  #rows: readonly MachineRow[] = []
  #byId: ReadonlyMap<number, Lifecycle> = new Map()
  #routes: ReadonlyMap<number, Route> = new Map()
  #ids = new Map<string, number>()

  constructor(lifecycles: readonly Lifecycle[]) {
    this.#own = lifecycles
  }

  /** The lifecycles of this process. */
  get byId(): ReadonlyMap<number, Lifecycle> {
    return this.#byId
  }

  /** The versions whose jobs this process migrates. */
  get routes(): ReadonlyMap<number, Route> {
    return this.#routes
  }

  /** Every lifecycle of this process, stored or not. */
  get own(): readonly Lifecycle[] {
    return this.#own
  }

  get rows(): readonly MachineRow[] {
    return this.#rows
  }

  /** The highest number that was loaded; a store with a higher one has versions that are new. */
  get lastId(): number {
    return Math.max(0, ...this.#rows.map(({ id }) => id))
  }

  /** Returns `undefined` for a lifecycle that was not registered. */
  idOf({ name, version }: Pick<Lifecycle, 'name' | 'version'>): number | undefined {
    return this.#ids.get(`${name} ${version}`)
  }

  /** Why a lifecycle has no number. */
  missing({ name, version }: Pick<Lifecycle, 'name' | 'version'>): PawlError {
    return this.find(name, version) === undefined
      ? new LifecycleUnknown(name, version)
      : new MachineDamaged(name, version, 'it has no number by which jobs could refer to it')
  }

  /** The same, for versions whose jobs this process migrates as well. */
  numberOf({ name, version }: Pick<Lifecycle, 'name' | 'version'>): number | undefined {
    const known = (one: MachineRow) => this.at(one.id) !== undefined
    const isSame = (one: MachineRow) => one.name === name && one.version === version
    return this.#rows.find((one) => isSame(one) && known(one))?.id
  }

  find(name: string, version: number): Lifecycle | undefined {
    return this.#own.find((own) => own.name === name && own.version === version)
  }

  /** The lifecycle of a number, with the code or restored from the store. */
  at(id: number): Lifecycle | undefined {
    return this.#byId.get(id) ?? this.#routes.get(id)?.before
  }

  /** The lifecycle of a number, also of a version that this process neither has nor can reach. */
  storedAt(id: number): Lifecycle | undefined {
    const row = this.#rows.find((one) => one.id === id)
    return row && this.#lifecycleOf(row)
  }

  /** Loads the rows of the store. A version that cannot be read or reached is left alone. */
  load(rows: readonly MachineRow[]): void {
    this.#rows = rows
    const known = rows.flatMap(({ id, name, version }) => {
      const own = this.find(name, version)
      return own === undefined ? [] : [[id, own] as const]
    })
    this.#byId = new Map(known)
    this.#ids = new Map(known.map(([id, { name, version }]) => [`${name} ${version}`, id]))
    const routes = rows.flatMap((row) => {
      const route = this.#byId.has(row.id) ? undefined : this.#routeOf(row)
      return route === undefined ? [] : [[row.id, route] as const]
    })
    this.#routes = new Map(routes)
  }

  /** Throws `MigrationInvalid` if a mapping of this process does not fit what the store has. */
  assertMappings(): void {
    for (const next of this.#own) {
      for (const row of this.#rows) {
        if (row.name !== next.name || !next.from.has(row.version)) continue
        const before = this.#lifecycleOf(row)
        const problems = before === undefined ? [] : findMappingProblems(before, next)
        if (problems.length === 0) continue
        throw new MigrationInvalid(next.name, row.version, next.version, problems)
      }
    }
  }

  /** The route from one version to another, or why there is none. */
  routeBetween(name: string, from: number, to: number): Route | MigrationInvalid {
    const row = this.#rows.find((one) => one.name === name && one.version === from)
    const route = row && this.#search(row, (version) => version === to)
    if (route !== undefined) return route
    return new MigrationInvalid(name, from, to, [`no mapping leads from ${from} to ${to}`])
  }

  /** The stored lifecycle of this version; throws `LifecycleUnknown` if there is none. */
  stored(name: string, version: number): Hop {
    const row = this.#rows.find((one) => one.name === name && one.version === version)
    const lifecycle = row && this.#lifecycleOf(row)
    if (row === undefined || lifecycle === undefined) throw new LifecycleUnknown(name, version)
    return { machine: row.id, lifecycle }
  }

  /** To the highest version that this process has the code of. */
  #routeOf(row: MachineRow): Route | undefined {
    const targets = this.#own
      .filter(({ name, version }) => name === row.name && version > row.version)
      .map(({ version }) => version)
      .sort((a, b) => b - a)
    for (const target of targets) {
      const route = this.#search(row, (version) => version === target)
      if (route !== undefined) return route
    }
    return undefined
  }

  /** The route with the fewest hops whose mappings fit. */
  #search(start: MachineRow, isEnd: (version: number) => boolean): Route | undefined {
    const before = this.#lifecycleOf(start)
    if (before === undefined) return undefined
    const later = this.#rows
      .filter(({ name, version }) => name === start.name && version > start.version)
      .flatMap((row) => {
        const lifecycle = this.#lifecycleOf(row)
        return lifecycle === undefined ? [] : [{ machine: row.id, lifecycle }]
      })
    let ways: Hop[][] = [[]]
    const seen = new Set<number>()
    while (ways.length > 0) {
      const next: Hop[][] = []
      for (const way of ways) {
        const last = way[way.length - 1]?.lifecycle ?? before
        for (const hop of later) {
          const { version } = hop.lifecycle
          if (seen.has(version) || !hop.lifecycle.from.has(last.version)) continue
          if (findMappingProblems(last, hop.lifecycle).length > 0) continue
          seen.add(version)
          if (isEnd(version)) return { before, hops: [...way, hop] }
          next.push([...way, hop])
        }
      }
      ways = next
    }
    return undefined
  }

  /** The code of this process, if it has the version: it may have more mappings than are stored. */
  #lifecycleOf({ name, version, definition }: MachineRow): Lifecycle | undefined {
    return this.find(name, version) ?? restoreLifecycle(name, version, definition)
  }
}
