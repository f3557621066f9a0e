/**
 * Claims from queues whose groups take turns; `../../core/limits/rotation.ts` has the rules.
 *
 * Ready jobs of such a queue are first put behind their groups: they are blocked by the gate of
 * their group, which is not counted, and a claim takes them from there. One claim at a time works
 * on the line of a queue, so turns are exact over all processes. The line is locked before gates,
 * and settlements never wait for it.
 */

import { gateName, isRotating, readKeys } from '../../core/limits/keys.ts'
import {
  afterTurns,
  type Found,
  type Group,
  inTurns,
  looksAt,
  type Turned,
} from '../../core/limits/rotation.ts'
import type { ClaimRequest, Ref } from '../contract/store.ts'
import type { BlockedJob, Look, ReadyJob } from './claim-limited.ts'
import type { Tx, Verb } from './operations.ts'

/** A ready job of a queue whose groups take turns. */
export interface Arrival {
  readonly ref: Ref
  readonly limitKey: string | null
  readonly createdAt: number
}

/** A group of which jobs have come, with its weight by the newest of them. */
export interface EnteredGroup {
  readonly key: string
  readonly weight: number
  readonly weightAt: number
}

/** How many jobs of a group are looked at. */
export interface GroupLook {
  readonly key: string
  readonly jobs: number
}

/** A job behind its group. */
export type GroupedJob = ReadyJob & { readonly group: string }

/** Jobs of a group that have the same keys, and the gate that blocks them. */
export interface GroupSkim {
  readonly group: string
  readonly limitKey: string
  readonly by: string
}

/** The operations of groups. */
export interface GroupOperations {
  /** Waits until no other claim works on the lines of these queues. */
  lockLines(queues: readonly string[]): void
  /** Locks the first ready jobs of a queue; those that others lock are left out. */
  arrivals(queue: string, limit: number): readonly Arrival[]
  /** Puts groups at the end of the line, in their order; those in the line keep their turn. */
  enterGroups(queue: string, groups: readonly EnteredGroup[]): void
  /** The first groups of the line. */
  firstGroups(queue: string, limit: number): readonly Group[]
  /** Locks the first jobs behind each group that may be claimed; others lock are left out. */
  lockGrouped(looks: readonly GroupLook[], request: ClaimRequest): readonly GroupedJob[]
  /** Moves further jobs behind a group to a gate that blocks them. */
  skimGroups(skims: readonly GroupSkim[]): void
  /** Writes groups after a claim, and removes those without jobs from the line. */
  writeGroups(queue: string, groups: readonly Turned[]): void
  /** Marks a queue as one whose groups take turns. */
  rotateQueue(queue: string): void
}

/** How many jobs one claim puts behind their groups. */
const ARRIVALS_MAX = 5000

/** What a claim has found in the line of a queue. */
export interface Line {
  readonly queue: string
  readonly groups: readonly Group[]
  readonly found: ReadonlyMap<string, Found>
  /** In the order of their turns. */
  readonly jobs: readonly GroupedJob[]
  /** Whether there may be others to find. */
  readonly more: boolean
}

/** Looks at the line of a queue that is locked. */
export function* lineOf(tx: Tx, { queue, limit }: Look, request: ClaimRequest): Verb<Line> {
  const arrived = yield* admit(tx, queue)
  const groups = yield* tx.firstGroups(queue, limit)
  if (groups.length === 0) return { queue, groups, found: new Map(), jobs: [], more: false }
  // While others still arrive, no group has a second turn: theirs may come first.
  const isWhole = arrived < ARRIVALS_MAX
  const turns = groups.reduce((sum, { credit }) => sum + credit, 0)
  const wanted = isWhole ? limit : Math.min(limit, turns)
  const looks = looksAt(groups, wanted)
  const jobs = new Map<string, GroupedJob[]>(groups.map(({ key }) => [key, []]))
  for (const job of yield* tx.lockGrouped(looks, request)) jobs.get(job.group)?.push(job)
  const found = new Map(
    looks.map(({ key, jobs: looked }): [string, Found] => {
      const number = (jobs.get(key) as GroupedJob[]).length
      return [key, { jobs: number, all: number < looked }]
    }),
  )
  const order = inTurns(groups, jobs, wanted).map(({ job }) => job)
  const areOthers = groups.length === limit || [...found.values()].some(({ all }) => !all)
  return { queue, groups, found, jobs: order, more: areOthers || !isWhole }
}

/** Puts ready jobs behind their groups; returns how many. */
function* admit(tx: Tx, queue: string): Verb<number> {
  const jobs = yield* tx.arrivals(queue, ARRIVALS_MAX)
  if (jobs.length === 0) return 0
  const groups = new Map<string, EnteredGroup>()
  const behind = jobs.map(({ ref, limitKey, createdAt }): BlockedJob => {
    const { gate: key, weight = 1 } = groupOf(queue, limitKey)
    const known = groups.get(key)
    if (known === undefined || createdAt >= known.weightAt) {
      groups.set(key, { key, weight, weightAt: createdAt })
    }
    return { ref, by: key }
  })
  yield* tx.enterGroups(queue, [...groups.values()])
  yield* tx.blockJobs(behind)
  return jobs.length
}

/** The group of a job; a job without a group belongs to the one without a key. */
function groupOf(queue: string, limitKey: string | null) {
  const all = gateName('group', queue)
  const own = readKeys(limitKey).find(({ gate }) => isRotating(gate))
  return own?.gate.startsWith(`${all}/`) ? own : { gate: all }
}

/** Writes what a claim has made of a line: `outcome` has every job that it has tried. */
export function* writeLine(
  tx: Tx,
  { queue, groups, found, jobs }: Line,
  outcome: ReadonlyMap<Ref, string | undefined>,
): Verb<void> {
  if (groups.length === 0) return
  const seen = jobs.filter(({ ref }) => outcome.has(ref))
  const tried = seen.map(({ ref, group }) => ({ group, started: outcome.get(ref) === undefined }))
  const skims = new Map<string, GroupSkim>()
  for (const { ref, group, limitKey } of seen) {
    const by = outcome.get(ref)
    if (by === undefined || limitKey === null) continue
    skims.set(`${group} ${limitKey}`, { group, limitKey, by })
  }
  if (skims.size > 0) yield* tx.skimGroups([...skims.values()])
  const turned = afterTurns(groups, tried, found)
  if (turned.length > 0 || skims.size > 0) yield* tx.writeGroups(queue, turned)
}
