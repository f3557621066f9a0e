/**
 * The graph of a flow for people. A flow can have thousands of nodes, so nodes that have the same
 * type and wait for the same kinds of nodes are folded into one box with counts, more of them the
 * larger the flow is. Pure.
 *
 *   level 0   every node is a box of its own
 *   level 1   classes of at least `FOLD_MIN` nodes are folded
 *   level 2   all classes are folded
 *   level 3   nodes of the same type and depth are folded
 *   level 4   nodes of a range of depths are folded, whatever their type
 *
 * Edges lead from a smaller depth to a greater one at each level, so a folded graph has no circle.
 */
import type { Need } from '../core/job/links.ts'
import { type FlowPoint, FlowPoints, type NodeStatus } from './flow-points.ts'

/** A node, or nodes that are folded into one. */
export interface FlowBox {
  readonly id: string
  /** The type of its nodes; if they have several, one of them. */
  readonly type: string
  /** How many types its nodes have. */
  readonly types: number
  readonly count: number
  /** The smallest and the greatest number of its nodes. */
  readonly first: number
  readonly last: number
  /** The job, if it is one node. */
  readonly job: string | null
  /** How many nodes stand how. */
  readonly statuses: Readonly<Partial<Record<NodeStatus, number>>>
  readonly releasedAt: number | null
  /** When the first of them started. */
  readonly startedAt: number | null
  /** When the last of them ended; null while one has not. */
  readonly endedAt: number | null
  readonly critical: boolean
}

/** Dependencies between the nodes of two boxes. */
export interface FlowEdge {
  readonly from: string
  readonly to: string
  /** The names of their groups. */
  readonly names: readonly string[]
  readonly needs: readonly Need[]
  readonly count: number
  /** How many of the awaited nodes have not ended. */
  readonly open: number
  /** How many came out otherwise than needed. */
  readonly failed: number
  /** When the last one arrived; null while one is open. */
  readonly at: number | null
  readonly critical: boolean
}

export interface FlowGraph {
  readonly boxes: readonly FlowBox[]
  readonly edges: readonly FlowEdge[]
  /** The numbers of the nodes of the critical path. */
  readonly critical: readonly number[]
}

/** More boxes than these cannot be followed by looking at them. */
const BOXES_MAX = 40
/** At level 1, smaller classes are not folded. */
const FOLD_MIN = 5
const DEPTHS_MAX = 20

export interface GraphOptions {
  /**
   * The nodes as they were at another time: boxes and edges stay the same, and their counts and
   * times are those of that time.
   */
  readonly then?: readonly FlowPoint[] | undefined
  /** Every node is a box of its own. */
  readonly unfolded?: boolean
}

/** Returns the graph. */
export function graphOf(nodes: readonly FlowPoint[], options: GraphOptions = {}): FlowGraph {
  const { then, unfolded = false } = options
  const structure = new FlowPoints(nodes)
  const boxOf = fold(structure, unfolded ? nodes.length : BOXES_MAX)
  const shown = then === undefined ? structure : new FlowPoints(overlaid(nodes, then))
  const path = shown.criticalPath().map(({ n }) => n)
  return {
    boxes: boxesOf(shown, boxOf, new Set(path)),
    edges: edgesOf(shown, boxOf, path),
    critical: path,
  }
}

/** Every node, as it was; those that did not exist have the status `later`. */
function overlaid(nodes: readonly FlowPoint[], then: readonly FlowPoint[]): FlowPoint[] {
  const past = new Map(then.map((point) => [point.n, point]))
  const later = { status: 'later', releasedAt: null, startedAt: null, endedAt: null } as const
  return nodes.map((node) => past.get(node.n) ?? { ...node, ...later })
}

/** Returns the box of each node, by number. */
function fold(flow: FlowPoints, most: number): ReadonlyMap<number, string> {
  const classes = classesOf(flow)
  const sizes = new Map<number, number>()
  for (const one of classes.values()) sizes.set(one, (sizes.get(one) ?? 0) + 1)
  const deepest = Math.max(0, ...[...flow.points.keys()].map((n) => flow.depthOf(n)))
  const own = (n: number) => `n${n}`
  const classOf = (n: number) => classes.get(n) as number
  const isLarge = (n: number) => (sizes.get(classOf(n)) as number) >= FOLD_MIN
  const levels: ((point: FlowPoint) => string)[] = [
    ({ n }) => own(n),
    ({ n }) => (isLarge(n) ? `c${classOf(n)}` : own(n)),
    ({ n }) => `c${classOf(n)}`,
    ({ n, type }) => `t${flow.depthOf(n)} ${type}`,
    ({ n }) => `d${Math.floor((flow.depthOf(n) * DEPTHS_MAX) / (deepest + 1))}`,
  ]
  const points = [...flow.points.values()]
  let boxes = new Map<number, string>()
  for (const level of levels) {
    boxes = new Map(points.map((point) => [point.n, level(point)]))
    if (new Set(boxes.values()).size <= most) break
  }
  return boxes
}

/** Nodes of the same class have the same type and wait for the same classes in the same way. */
function classesOf(flow: FlowPoints): ReadonlyMap<number, number> {
  const known = new Map<string, number>()
  const classes = new Map<number, number>()
  for (const point of flow.inOrder()) {
    const waits = flow
      .dependencies(point)
      .map(({ n, name, need }) => `${classes.get(n)} ${need} ${name}`)
    const likeness = JSON.stringify([point.type, ...[...new Set(waits)].sort()])
    const own = known.get(likeness) ?? known.size
    known.set(likeness, own)
    classes.set(point.n, own)
  }
  return classes
}

function boxesOf(
  { points }: FlowPoints,
  boxOf: ReadonlyMap<number, string>,
  path: ReadonlySet<number>,
): FlowBox[] {
  const groups = new Map<string, FlowPoint[]>()
  for (const point of points.values()) {
    const id = boxOf.get(point.n) as string
    const group = groups.get(id)
    if (group === undefined) groups.set(id, [point])
    else group.push(point)
  }
  return [...groups].map(([id, nodes]) => boxOfNodes(id, nodes, path))
}

function boxOfNodes(id: string, nodes: readonly FlowPoint[], path: ReadonlySet<number>): FlowBox {
  const [first] = nodes as [FlowPoint]
  const statuses: Partial<Record<NodeStatus, number>> = {}
  for (const { status } of nodes) statuses[status] = (statuses[status] ?? 0) + 1
  return {
    id,
    type: first.type,
    types: new Set(nodes.map(({ type }) => type)).size,
    count: nodes.length,
    first: first.n,
    last: (nodes.at(-1) as FlowPoint).n,
    job: nodes.length === 1 ? first.id : null,
    statuses,
    releasedAt: extreme(
      nodes.map(({ releasedAt }) => releasedAt),
      Math.min,
    ),
    startedAt: extreme(
      nodes.map(({ startedAt }) => startedAt),
      Math.min,
    ),
    endedAt: nodes.every(({ endedAt }) => endedAt !== null)
      ? extreme(
          nodes.map(({ endedAt }) => endedAt),
          Math.max,
        )
      : null,
    critical: nodes.some(({ n }) => path.has(n)),
  }
}

/** The least or the greatest of the times that are there. */
function extreme(times: readonly (number | null)[], by: (a: number, b: number) => number) {
  let found: number | null = null
  for (const at of times) if (at !== null) found = found === null ? at : by(found, at)
  return found
}

interface Gathered {
  readonly names: Set<string>
  readonly needs: Set<Need>
  count: number
  open: number
  failed: number
  at: number
}

function edgesOf(
  flow: FlowPoints,
  boxOf: ReadonlyMap<number, string>,
  path: readonly number[],
): FlowEdge[] {
  const edges = new Map<string, Gathered & { readonly from: string; readonly to: string }>()
  for (const point of flow.points.values()) {
    const to = boxOf.get(point.n) as string
    for (const { n, name, need } of flow.dependencies(point)) {
      const from = boxOf.get(n) as string
      if (from === to) continue
      const key = `${from}\n${to}`
      const fresh = { names: new Set<string>(), needs: new Set<Need>() }
      const edge = edges.get(key) ?? { ...fresh, from, to, count: 0, open: 0, failed: 0, at: 0 }
      edges.set(key, edge)
      gather(edge, flow.points.get(n) as FlowPoint, name, need)
    }
  }
  const lit = new Set(
    path.slice(1).map((n, i) => `${boxOf.get(path[i] as number)}\n${boxOf.get(n)}`),
  )
  return [...edges].map(([key, { names, needs, at, ...edge }]) => ({
    ...edge,
    names: [...names],
    needs: [...needs],
    at: edge.open > 0 ? null : at,
    critical: lit.has(key),
  }))
}

function gather(edge: Gathered, { status, endedAt }: FlowPoint, name: string, need: Need): void {
  edge.names.add(name)
  edge.needs.add(need)
  edge.count++
  if (endedAt === null) edge.open++
  else edge.at = Math.max(edge.at, endedAt)
  if (need === 'success' && (status === 'failed' || status === 'cancelled')) edge.failed++
}
