/** The flows and batches of a seed: random graphs, batches that are closed late, empty ones. */
import { standard } from 'pawl/rules'
import type { Store } from 'pawl/sqlite'

type FlowRequest = Parameters<Store['flows']['create']>[0]
type FlowNode = FlowRequest['nodes'][number]
type FlowItem = FlowNode['item']
type AfterGroup = NonNullable<FlowNode['after']>[number]

type Between = (from: number, below: number) => number

/** A flow or batch, and how far the office is with it. */
export interface PlannedFlow {
  readonly request: FlowRequest
  /** How many members are added after the creation, call by call. */
  readonly additions: number[]
  /** How many nodes it has in the end. */
  readonly size: number
  isCreated: boolean
  isClosed: boolean
  /** How many nodes were acknowledged. */
  known: number
}

const NODES = [2, 8] as const
const MEMBERS = [0, 5] as const
const CALLBACKS = ['success', 'end', 'failure'] as const

/** Makes the plan of one flow or batch. */
export function planFlow(id: string, between: Between): PlannedFlow {
  return between(0, 3) === 0 ? planBatch(id, between) : planGraph(id, between)
}

/** A job of a flow. Its type says what its handler invokes. */
export function itemOf(type: string): FlowItem {
  return { lifecycle: standard, input: 'null', command: { type, queue: 'flows' } }
}

function planGraph(id: string, between: Between): PlannedFlow {
  const size = between(...NODES)
  const nodes = Array.from({ length: size }, (_, n): FlowNode => {
    const item = itemOf(typeOf(between))
    const groups = n === 0 ? [] : groupsOf(n, between)
    const onFailure = (['park', 'park', 'cancel', 'fail'] as const)[between(0, 4)] ?? 'park'
    return groups.length === 0 ? { item } : { item, after: groups, onFailure }
  })
  return planned({ id, kind: 'flow', key: `flow ${id}`, nodes }, [], size)
}

function groupsOf(n: number, between: Between): AfterGroup[] {
  const count = between(0, Math.min(n, 3) + 1)
  return Array.from({ length: count }, (_, i): AfterGroup => {
    const need = between(0, 4) === 0 ? 'end' : 'success'
    return { name: `group ${i}`, of: [between(0, n)], need, list: false }
  })
}

function planBatch(id: string, between: Between): PlannedFlow {
  const callbacks = CALLBACKS.map(
    (need): FlowNode => ({
      item: itemOf('plain'),
      after: [{ name: 'members', of: 'members', need, list: true }],
    }),
  )
  const members = Array.from({ length: between(...MEMBERS) }, () => ({ item: itemOf('plain') }))
  const isOpen = between(0, 2) === 0
  const additions = isOpen ? Array.from({ length: between(0, 3) }, () => between(1, 3)) : []
  const nodes = [...callbacks, ...members]
  const size = additions.reduce((sum, count) => sum + count, nodes.length)
  return planned({ id, kind: 'batch', nodes, open: isOpen }, additions, size)
}

function typeOf(between: Between): string {
  return ['plain', 'plain', 'parent', 'grandparent'][between(0, 4)] ?? 'plain'
}

function planned(request: FlowRequest, additions: number[], size: number): PlannedFlow {
  const isClosed = request.open !== true
  return { request, additions, size, isCreated: false, isClosed, known: 0 }
}

/** What the handler of a type invokes: the type of the children, and how many. */
export function invokesOf(type: string, id: string) {
  const digit = Number.parseInt(id.slice(-1), 16)
  const children = { name: 'a', n: 1, count: 1 + (digit % 3), concurrency: 1 + (digit % 2) }
  if (type === 'parent') return [{ ...children, of: 'plain' }]
  return type === 'grandparent' ? [{ ...children, count: 1 + (digit % 2), of: 'parent' }] : []
}
