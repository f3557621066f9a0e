/**
 * How live jobs move from one version of a lifecycle to a later one.
 *
 * The later version declares it: `from: { 1: { old: 'new' } }`. A state that the mapping does not
 * list keeps its name. Every state of the earlier version in which a job can be must have a target.
 * The target must have a role that the scheduler treats in a compatible way:
 *
 *   role       allowed roles of the target
 *   idle       idle or parked: a migration must not start a job that was never submitted
 *   waiting    waiting, ready or parked
 *   ready      ready, waiting or parked
 *   parked     parked; ready if the new version has no parked state: the job then stays parked by
 *              its reason (rule G7)
 *   held       held: the attempt continues
 *   ended      the same outcome (P6), or no target: an ended job is migrated only together with an
 *              operator edge that leads out of its state
 *
 * A waiting target must have a path by `due`; otherwise the job would never run.
 */
import { type Lifecycle, outcomeOf, pathOf, type Role } from './lifecycle.ts'

/** What must be known about an earlier version. */
export type EarlierVersion = Pick<Lifecycle, 'name' | 'version' | 'roles'>

const TARGETS: Readonly<Record<Role, readonly Role[]>> = {
  idle: ['idle', 'parked'],
  waiting: ['waiting', 'ready', 'parked'],
  ready: ['ready', 'waiting', 'parked'],
  held: ['held'],
  parked: ['parked'],
  succeeded: ['succeeded'],
  failed: ['failed'],
  cancelled: ['cancelled'],
}

/** Returns the state of `next` for a state of an earlier version; `undefined` if it has none. */
export function migratedState(
  next: Pick<Lifecycle, 'roles' | 'from'>,
  version: number,
  state: string,
): string | undefined {
  const states = next.from.get(version)
  if (states === undefined) return undefined
  return states.get(state) ?? (next.roles.has(state) ? state : undefined)
}

/** Returns true if a migration may move a job from state `from` to state `to`. */
export function isSameToScheduler(
  before: EarlierVersion,
  next: Lifecycle,
  from: string,
  to: string,
): boolean {
  const [old, role] = [before.roles.get(from), next.roles.get(to)]
  if (old === undefined || role === undefined) return false
  if (old === 'parked' && next.parked === undefined) return role === 'ready'
  if (!TARGETS[old].includes(role)) return false
  return role !== 'waiting' || pathOf(next, to, 'due') !== undefined
}

/** Returns all reasons why the mapping of `next` does not fit an earlier version. */
export function findMappingProblems(before: EarlierVersion, next: Lifecycle): string[] {
  const strangers = [...(next.from.get(before.version)?.keys() ?? [])]
    .filter((state) => !before.roles.has(state))
    .map((state) => `version ${before.version} has no state ${state}`)
  const misfits = [...before.roles].flatMap(([from, role]) => {
    const to = migratedState(next, before.version, from)
    if (to === undefined) {
      return outcomeOf(role) === undefined ? [`${from} has no target`] : []
    }
    if (isSameToScheduler(before, next, from, to)) return []
    return [`${from} (${role}) cannot become ${to} (${next.roles.get(to)})`]
  })
  return [...strangers, ...misfits]
}
