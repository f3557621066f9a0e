/**
 * Groups that take turns. The jobs of a queue that have the same key are a group; jobs of the queue
 * without a key are one group together, of weight 1.
 *
 * Groups that wait stand in a line, by the number of their turn. The first group in the line starts
 * as many jobs as its weight says, and goes to the end of the line; so does a group that has fewer.
 * `credit` is how many it may still start in the present turn, because a claim may ask for less
 * than a whole turn. A group that begins to wait goes to the end of the line.
 *
 * So between two turns of a group every other group has at most one turn. Of every Σw jobs that
 * start, where Σw is the sum of the weights of the groups that wait, a group of weight w that waits
 * starts w (promise P13b). `test/core/rotation.test.ts` checks it for random arrivals and weights.
 */

/** A group that waits. */
export interface Group {
  readonly key: string
  /** The smallest number is the first in the line. */
  readonly turn: number
  readonly credit: number
  readonly weight: number
}

/** A job in the order in which its queue would start jobs. */
export interface InTurn<T> {
  readonly group: string
  readonly job: T
}

/** Returns how many jobs of each group have to be looked at, to start `wanted` jobs. */
export function looksAt(
  groups: readonly Group[],
  wanted: number,
): { readonly key: string; readonly jobs: number }[] {
  const first = groups.reduce((sum, { credit }) => sum + credit, 0)
  const round = groups.reduce((sum, { weight }) => sum + weight, 0)
  const rounds = round === 0 ? 0 : Math.max(0, Math.ceil((wanted - first) / round))
  return groups.map(({ key, credit, weight }) => {
    return { key, jobs: Math.min(wanted, credit + rounds * weight) }
  })
}

/** Returns the order in which jobs start. The groups are in the order of their turns. */
export function inTurns<T>(
  groups: readonly Group[],
  jobs: ReadonlyMap<string, readonly T[]>,
  wanted: number,
): InTurn<T>[] {
  const order: InTurn<T>[] = []
  const line = groups.map(({ key, credit, weight }) => {
    return { key, credit, weight, jobs: jobs.get(key) ?? [], next: 0 }
  })
  for (let at = 0; at < line.length && order.length < wanted; at++) {
    const group = line[at] as (typeof line)[number]
    const share = Math.min(group.credit, wanted - order.length)
    const own = group.jobs.slice(group.next, group.next + share)
    order.push(...own.map((job) => ({ group: group.key, job })))
    group.next += own.length
    if (group.next < group.jobs.length) line.push({ ...group, credit: group.weight })
  }
  return order
}

/** A job that was looked at in its turn, and whether it started or a limit blocks it. */
export interface Tried {
  readonly group: string
  readonly started: boolean
}

/** What was found of a group. */
export interface Found {
  readonly jobs: number
  /** There are no others that could start now. */
  readonly all: boolean
}

const NOTHING: Found = { jobs: 0, all: true }

/** A group after a claim; one that goes to the end of the line needs a new turn. */
export interface Turned {
  readonly key: string
  readonly credit: number
  readonly toEnd: boolean
}

/**
 * Returns the groups that a claim has changed, those that go to the end of the line in the order in
 * which they do. `tried` are the jobs that were looked at in their turn, in that order.
 *
 * A job that a limit blocks takes no credit: its group keeps its turn, and the next claim looks at
 * its next job. A group of which nothing was found goes to the end: its jobs are of types that this
 * process does not serve, or it has none.
 */
export function afterTurns(
  groups: readonly Group[],
  tried: readonly Tried[],
  found: ReadonlyMap<string, Found>,
): Turned[] {
  const states = new Map(groups.map((group) => [group.key, new State(group)]))
  const ends: string[] = []
  const toEnd = (key: string) => {
    const at = ends.indexOf(key)
    if (at >= 0) ends.splice(at, 1)
    ends.push(key)
  }
  for (const { group, started } of tried) {
    const state = states.get(group) as State
    if (state.try(started)) toEnd(group)
  }
  for (const [key, state] of states) {
    if (state.isSpent(found.get(key) ?? NOTHING)) toEnd(key)
  }
  const stay = [...states.values()].filter((state) => state.isChanged && !ends.includes(state.key))
  return [
    ...stay.map(({ key, credit }) => ({ key, credit, toEnd: false })),
    ...ends.map((key) => ({ key, credit: (states.get(key) as State).credit, toEnd: true })),
  ]
}

/** A group while the jobs of a claim are counted. */
class State {
  readonly key: string
  credit: number
  readonly #before: Group
  #tried = 0
  #blocked = 0

  constructor(group: Group) {
    this.key = group.key
    this.credit = group.credit
    this.#before = group
  }

  get isChanged(): boolean {
    return this.credit !== this.#before.credit
  }

  /** Counts a job; returns true if the turn of the group ends with it. */
  try(started: boolean): boolean {
    this.#tried++
    if (!started) {
      this.#blocked++
      return false
    }
    this.credit--
    if (this.credit > 0) return false
    this.credit = this.#before.weight
    return true
  }

  /** Whether the turn of the group ends because it has no further jobs. */
  isSpent({ jobs, all }: Found): boolean {
    if (!all || jobs > this.#tried || this.#blocked > 0) return false
    if (this.#tried > 0 && this.credit === this.#before.weight) return false
    this.credit = this.#before.weight
    return true
  }
}
