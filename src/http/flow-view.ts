/** A flow with its graph, now or at another time, for routes and commands. */
import { type FlowGraph, graphOf } from '../audit/flow-folding.ts'
import { type FlowPoint, momentsOf, pointOf } from '../audit/flow-points.ts'
import type { Job } from '../core/job/job.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import { pagesOf } from '../engine/pages.ts'
import type { Pawl } from '../engine/pawl.ts'
import type { FlowInfo, FlowNodeInfo, FlowProgress } from '../stores/contract/flows.ts'
import type { Store } from '../stores/contract/store.ts'
import { FlowNotFound } from '../stores/errors.ts'
import { Kept } from './kept.ts'

export interface FlowView {
  readonly flow: FlowInfo
  readonly progress: FlowProgress
  /** The nodes at the time asked for. */
  readonly points: readonly FlowPoint[]
  readonly graph: FlowGraph
  /** The times at which something happened. */
  readonly moments: readonly number[]
}

const PAGE = 1000

/** Returns the flow; throws `FlowNotFound`. */
export async function findFlow({ flows }: Store, id: string): Promise<FlowInfo> {
  const flow = await flows.get(id)
  if (flow === undefined) throw new FlowNotFound(id)
  return flow
}

/** How many flows are kept in memory. */
const KEPT_MAX = 10
const kept = new WeakMap<Pawl, Map<string, Kept<FlowView>>>()

/**
 * The same as `readFlow` of the present, for clients that ask again and again: a view that takes
 * long to compute is shared by all of them for some time.
 */
export function watchFlow(pawl: Pawl, id: string): Promise<FlowView> {
  const views = kept.get(pawl) ?? new Map<string, Kept<FlowView>>()
  kept.set(pawl, views)
  const { clock } = pawl.internals.environment
  const view = views.get(id) ?? new Kept(() => readFlow(pawl, id), clock, 0)
  views.delete(id)
  views.set(id, view)
  for (const oldest of views.keys()) {
    if (views.size <= KEPT_MAX) break
    views.delete(oldest)
  }
  return view.get()
}

/** A command has changed the flow: the next view is computed. */
export function forgetFlow(pawl: Pawl, id: string): void {
  kept.get(pawl)?.get(id)?.forget()
}

/** Reads a flow with all its nodes. */
export async function readFlow(
  pawl: Pawl,
  id: string,
  { at, unfolded = false }: { readonly at?: number | undefined; readonly unfolded?: boolean } = {},
): Promise<FlowView> {
  const { store } = pawl
  const flow = await findFlow(store, id)
  const progress = await store.flows.progress(id)
  const now = await pointsOf(pawl, id)
  const then = at === undefined ? undefined : await pointsOf(pawl, id, at)
  if (progress === undefined) throw new FlowNotFound(id)
  return {
    flow,
    progress,
    points: then ?? now,
    graph: graphOf(now, { then, unfolded }),
    moments: momentsOf(now),
  }
}

async function pointsOf(pawl: Pawl, id: string, at?: number): Promise<FlowPoint[]> {
  const points: FlowPoint[] = []
  const now = at ?? pawl.store.now()
  for await (const node of nodesOf(pawl.store, id, at)) {
    points.push(pointOf(node, lifecycleIn(pawl, node.job), now))
  }
  return points
}

/** All nodes of a flow, or children of a job, by number. */
export async function* nodesOf(
  { flows }: Store,
  id: string,
  at?: number,
): AsyncGenerator<FlowNodeInfo> {
  const ask = (page: { limit: number; after?: string }) =>
    flows.nodes(id, { ...page, ...(at !== undefined && { at }) })
  for await (const { items } of pagesOf(ask, { size: PAGE })) yield* items
}

/** Undefined if this process does not know it. */
function lifecycleIn({ internals }: Pawl, job: Job): Lifecycle | undefined {
  return internals.lifecycles.find(
    ({ name, version }) => name === job.lifecycle && version === job.lifecycleVersion,
  )
}
