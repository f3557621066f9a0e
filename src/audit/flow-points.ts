/**
 * The nodes of a flow as points of a graph: what each waits for, its status, and the critical
 * path, which is the chain of nodes that decides when the flow is done. Pure.
 */
import { isCommitted, type Job } from '../core/job/job.ts'
import { laneOf } from '../core/job/lanes.ts'
import { type AfterGroup, LINKS, type Need } from '../core/job/links.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'

/** Statuses of nodes. `waits`: for other nodes, children or a signal. `later`: not created yet. */
export const NODE_STATUSES = [
  'later',
  'waits',
  'scheduled',
  'ready',
  'running',
  'parked',
  'succeeded',
  'failed',
  'cancelled',
] as const

export type NodeStatus = (typeof NODE_STATUSES)[number]

/** A node, as the graph needs it. */
export interface FlowPoint {
  readonly n: number
  readonly id: string
  readonly type: string
  readonly status: NodeStatus
  readonly createdAt: number
  /** When its dependencies had all arrived; null while it waits for them. */
  readonly releasedAt: number | null
  readonly startedAt: number | null
  readonly endedAt: number | null
  readonly after: readonly AfterGroup[]
}

/** A dependency: the number of the awaited node, and what is needed of it. */
export interface Dependency {
  readonly n: number
  readonly name: string
  readonly need: Need
}

/** Returns the status of a job at a time. `lifecycle` is undefined if it is not known here. */
export function statusOf(job: Job, lifecycle: Lifecycle | undefined, now: number): NodeStatus {
  if (job.outcome !== null) return job.outcome
  if (job.blockedReason !== null) return 'parked'
  if (job.execution !== null || isCommitted(job)) return 'running'
  if ((job.links & LINKS.waits) !== 0) return 'waits'
  const lane = lifecycle === undefined ? undefined : laneOf(lifecycle, job, now)
  if (lane === 'parked') return 'parked'
  if (job.runAt === null) return 'waits'
  return job.runAt > now ? 'scheduled' : 'ready'
}

/** A node as stores return it. */
interface StoredNode {
  readonly n: number
  readonly job: Job
  readonly after: readonly AfterGroup[]
  readonly releasedAt?: number
}

/** Returns the point of a node. */
export function pointOf(
  { n, job, after, releasedAt }: StoredNode,
  lifecycle: Lifecycle | undefined,
  now: number,
): FlowPoint {
  return {
    n,
    id: job.id,
    type: job.type,
    status: statusOf(job, lifecycle, now),
    createdAt: job.createdAt,
    releasedAt: releasedAt ?? (after.length === 0 ? job.createdAt : null),
    startedAt: job.startedAt,
    endedAt: job.outcome === null ? null : job.endedAt,
    after,
  }
}

type AfterGroups = FlowPoint['after']

/** The points of a flow, and what each waits for. */
export class FlowPoints {
  /** By number, in their order. */
  readonly points: ReadonlyMap<number, FlowPoint>
  readonly #depths = new Map<number, number>()
  readonly #dependencies = new Map<AfterGroups, readonly Dependency[]>()

  constructor(points: readonly FlowPoint[]) {
    this.points = new Map(points.map((point) => [point.n, point]))
    for (const point of this.inOrder()) {
      const before = this.dependencies(point).map(({ n }) => this.depthOf(n))
      this.#depths.set(
        point.n,
        before.reduce((most, one) => Math.max(most, one + 1), 0),
      )
    }
  }

  /** Every node after those that it waits for. Callbacks of a batch wait for later nodes. */
  inOrder(): FlowPoint[] {
    const all = [...this.points.values()]
    return [...all.filter((one) => !isCallback(one)), ...all.filter(isCallback)]
  }

  /** How many nodes the longest chain before a node has. */
  depthOf(n: number): number {
    return this.#depths.get(n) ?? 0
  }

  /** The dependencies of a node that are in the store. */
  dependencies({ after }: Pick<FlowPoint, 'after'>): readonly Dependency[] {
    const known = this.#dependencies.get(after)
    if (known !== undefined) return known
    const found = after.flatMap(({ name, need, of }) =>
      this.#numbersIn(of).flatMap((n) => (this.points.has(n) ? [{ n, name, need }] : [])),
    )
    this.#dependencies.set(after, found)
    return found
  }

  /** The nodes that decide when the flow is done, in their order; see `lastOf` and `heldUpBy`. */
  criticalPath(): FlowPoint[] {
    const path: FlowPoint[] = []
    for (let at = this.#lastOf(); at !== undefined; at = this.#heldUpBy(at)) path.unshift(at)
    return path
  }

  #numbersIn(of: AfterGroup['of']): number[] {
    if (of === 'members') {
      return [...this.points.values()].flatMap((one) => (isCallback(one) ? [] : [one.n]))
    }
    return of.flatMap((range) => (typeof range === 'number' ? [range] : numbersOf(range)))
  }

  /**
   * The node that the flow ends with: the last one that ended, or while the flow is open, the one
   * with the longest chain before it. A node that never ran decides nothing.
   */
  #lastOf(): FlowPoint | undefined {
    const ran = [...this.points.values()].filter((one) => !isSkipped(one))
    return this.#furthest(ran)
  }

  /** The dependency that arrived last, or that is furthest from its end. */
  #heldUpBy(point: FlowPoint): FlowPoint | undefined {
    const needed = this.dependencies(point).filter(({ need }) => need !== 'failure')
    return this.#furthest(needed.flatMap(({ n }) => this.points.get(n) ?? []))
  }

  #furthest(among: readonly FlowPoint[]): FlowPoint | undefined {
    const open = among.filter(({ endedAt }) => endedAt === null)
    const depth = (one: FlowPoint) => this.depthOf(one.n)
    return open.length > 0
      ? greatest(open, depth)
      : greatest(among, ({ endedAt }) => endedAt as number)
  }
}

function isCallback({ after }: FlowPoint): boolean {
  return after.some(({ of }) => of === 'members')
}

/** It was cancelled before it ran. */
function isSkipped({ status, startedAt }: FlowPoint): boolean {
  return status === 'later' || (status === 'cancelled' && startedAt === null)
}

function numbersOf([first, last]: readonly [number, number]): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i)
}

/** The first of those with the greatest value. */
function greatest(all: readonly FlowPoint[], by: (one: FlowPoint) => number) {
  let best: FlowPoint | undefined
  for (const one of all) if (best === undefined || by(one) > by(best)) best = one
  return best
}

/** How many moments a slider has at most. */
const MOMENTS_MAX = 240

/** The times at which something happened, oldest first; evenly chosen ones if there are many. */
export function momentsOf(points: readonly FlowPoint[]): number[] {
  const times = points.flatMap(({ createdAt, releasedAt, startedAt, endedAt }) =>
    [createdAt, releasedAt, startedAt, endedAt].filter((at) => at !== null),
  )
  const sorted = [...new Set(times)].sort((a, b) => a - b)
  if (sorted.length <= MOMENTS_MAX) return sorted
  const step = (sorted.length - 1) / (MOMENTS_MAX - 1)
  return Array.from({ length: MOMENTS_MAX }, (_, i) => sorted[Math.round(i * step)] as number)
}
