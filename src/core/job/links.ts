/**
 * Links between jobs: a job waits until others have ended. Both are created in one call (a flow, a
 * batch or an invoke), so every awaited job knows from its first fact that its end concerns others,
 * and no chain of links can be a circle.
 *
 *   awaited   the job whose end is waited for
 *   waiter    the job that waits: a dependent in its initial state, or a parent in its state for
 *             waiting
 *
 * The column `links` of a job has bits, which facts change:
 *
 *    1   awaited: its end concerns others
 *    2   waits now: nothing but an arrival may start it
 *    4   has invoked children
 *    8   a failed dependency cancels it
 *   16   a failed dependency fails it; without 8 and 16 it is parked
 *   32   waits for all members of its batch, which may still be open
 *   64   one dependency must fail; it is cancelled if all succeed
 */

/** The bits of `links`. */
export const LINKS = {
  awaited: 1,
  waits: 2,
  children: 4,
  cancels: 8,
  fails: 16,
  members: 32,
  failure: 64,
} as const

/** The reason of a job whose dependencies have arrived. */
export const ARRIVED = 'arrived'
/** The blocked reason, and the reason, of a job whose dependency came out otherwise. */
export const DEPENDENCY_FAILED = 'dependency_failed'
/** The reason of a cancelled `onFailure` callback of a batch without failures. */
export const NOT_NEEDED = 'not_needed'
/** The reason of a child that was cancelled because its parent has ended. */
export const PARENT_ENDED = 'parent_ended'

/**
 * What a waiter needs of an awaited job: that it succeeds, that it ends in whatever way, or that it
 * does not succeed. Of several that must fail, the first one is enough.
 */
export type Need = 'success' | 'end' | 'failure'

/** What happens to a dependent if a dependency that must succeed does not. */
export type OnFailure = 'park' | 'cancel' | 'fail'

/** Node numbers: one, or the first and the last of a range. */
export type NodeRange = number | readonly [first: number, last: number]

/** A named group of dependencies. */
export interface AfterGroup {
  readonly name: string
  /** Nodes of the same flow, or all members of the batch, also those that are added later. */
  readonly of: readonly NodeRange[] | 'members'
  readonly need: Need
  /** The handler sees a list, also for one dependency or none. */
  readonly list: boolean
}

/** What a job waits for before its first attempt. */
export interface After {
  readonly groups: readonly AfterGroup[]
  readonly onFailure: OnFailure
}

/**
 * The place of a job in a flow, a batch, or among the children of an invoke. The id of the job
 * follows from it, as `nodeId` of the stores derives it.
 */
export interface FlowPlace {
  /** The id of the flow or batch; of the parent, for children. */
  readonly id: string
  /** From 0. */
  readonly n: number
  /** For children: name and number of the invoke, as `<name>/<number>`. */
  readonly as?: string
}

/** What is left of the links of a waiter, as a store has read it under the lock of the waiter. */
export interface Look {
  /** A dependency has not ended, or members can still be added to the batch. */
  readonly open: boolean
  /** A job that had to succeed and did not. */
  readonly failed?: string
  /** A job that did not succeed, of those of which one must fail. */
  readonly hit?: string
}

/** Returns true if this job waits for others now. */
export function isWaiter({ links }: { readonly links: number }): boolean {
  return (links & LINKS.waits) !== 0
}

/** Returns the bits of a new job. */
export function linksOf(awaited: boolean | undefined, after: After | undefined): number {
  let links = awaited ? LINKS.awaited : 0
  if (after === undefined) return links
  links |= LINKS.waits
  if (after.onFailure === 'cancel') links |= LINKS.cancels
  if (after.onFailure === 'fail') links |= LINKS.fails
  if (after.groups.some(({ of }) => of === 'members')) links |= LINKS.members
  if (after.groups.some(({ need }) => need === 'failure')) links |= LINKS.failure
  return links
}

/** Returns the bits without the one that says that the job waits. */
export function arrivedLinks(links: number): number {
  return links & ~LINKS.waits
}

/** Returns the node numbers of ranges, in order. */
export function nodesOf(ranges: readonly NodeRange[]): number[] {
  return ranges.flatMap((range) => {
    if (typeof range === 'number') return range
    const [first, last] = range
    return Array.from({ length: last - first + 1 }, (_, i) => first + i)
  })
}
