/** Checks of flows, batches and invokes, before anything is written. */
import { count, flag, listOf, name, oneOf, optional, record, uuid } from '../../core/checks.ts'
import { CommandInvalid, type PawlError } from '../../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import { afterFault, INVOKED_MAX } from '../../core/job/link-checks.ts'
import { type AfterGroup, nodesOf } from '../../core/job/links.ts'
import {
  type FlowFilter,
  type FlowItem,
  type FlowNode,
  type FlowRequest,
  type InvokeRequest,
  LINKS_MAX,
  NODES_MAX,
} from './flows.ts'

const FLOW: FieldChecks<FlowRequest> = {
  id: uuid,
  kind: (value) => oneOf(value, ['flow', 'batch']),
  key: name,
  nodes: (values: readonly unknown[]) => listOf(values, NODES_MAX, () => undefined),
  open: flag,
}

const NODE: FieldChecks<FlowNode> = {
  item: record,
  after: (values: readonly unknown[]) => listOf(values, NODES_MAX, () => undefined),
  onFailure: (value) => oneOf(value, ['park', 'cancel', 'fail']),
}

const INVOKE: FieldChecks<InvokeRequest> = {
  id: uuid,
  fence: record,
  name,
  n: (value) => count(value, 1, Number.MAX_SAFE_INTEGER),
  children: (values: readonly unknown[]) => listOf(values, INVOKED_MAX, () => undefined),
  concurrency: (value) => count(value, 1, INVOKED_MAX),
  onParentEnd: (value) => oneOf(value, ['cancel', 'abandon']),
  trace: unchecked,
}

const FILTER: FieldChecks<FlowFilter> = {
  state: (value) => oneOf(value, ['open', 'attention', 'done']),
  kind: (value) => oneOf(value, ['flow', 'batch']),
  key: name,
}

/** A node that is refused, and why. */
export interface NodeFault {
  readonly node?: number
  readonly error: PawlError
}

/** Returns what is wrong with a flow, and with which of its nodes. */
export function findFlowFault(flow: FlowRequest): NodeFault | undefined {
  const fault = faultOf(() => checkFields(flow, FLOW, { what: 'flow' }))
  if (fault !== undefined) return { error: fault }
  if (flow.open && flow.kind !== 'batch') return { error: invalid('open', 'is for batches only') }
  for (const [n, node] of flow.nodes.entries()) {
    const error = nodeFault(flow, node, n)
    if (error !== undefined) return { error, node: n }
  }
  const isLarge = linkCount(flow) > LINKS_MAX
  return isLarge
    ? { error: invalid('nodes', `must not have more than ${LINKS_MAX} links`) }
    : undefined
}

/** How many links a flow has. */
function linkCount({ nodes }: FlowRequest): number {
  const groups = nodes.flatMap(({ after = [] }) => after)
  const counts = groups.map(({ of }) => (of === 'members' ? nodes.length : nodesOf(of).length))
  return counts.reduce((sum, own) => sum + own, 0)
}

function nodeFault(flow: FlowRequest, node: FlowNode, n: number): PawlError | undefined {
  const own = faultOf(() => checkFields(node, NODE, { what: 'node' })) ?? findItemRefusal(node.item)
  if (own !== undefined || node.after === undefined) return own
  const { after: groups, onFailure = 'park' } = node
  const why = afterFault({ groups, onFailure })
  if (why !== undefined) return invalid('after', why)
  return groups.map((group) => groupFault(flow, group, n)).find((error) => error !== undefined)
}

function groupFault(flow: FlowRequest, { of }: AfterGroup, n: number): PawlError | undefined {
  if (of === 'members') {
    const isCallback = flow.kind === 'batch' && flow.nodes.slice(0, n).every(isCallbackNode)
    return isCallback ? undefined : invalid('after', 'must name nodes: only callbacks are of all')
  }
  if (flow.kind === 'batch') return invalid('after', 'must be of all members of the batch')
  const later = nodesOf(of).find((node) => node >= n)
  return later === undefined
    ? undefined
    : invalid('after', `must name nodes before node ${n}, not node ${later}`)
}

/** Returns true for a node that waits for all members of its batch. */
export function isCallbackNode({ after }: FlowNode): boolean {
  return after !== undefined
}

const WHY_KEY = 'must not be set: a key might belong to another job'
const WHY_ADMISSION =
  'must not be set: a job with debounce, singleton or rateLimit might be another job'

/** Returns why a job cannot be part of a flow, a batch or an invoke. */
export function findItemRefusal(item: FlowItem): PawlError | undefined {
  const why = record(item) ?? record(item.command)
  if (why !== undefined) return invalid('item', why)
  if (item.command.key !== undefined) return invalid('key', WHY_KEY)
  if (item.command.hold !== undefined) {
    return invalid('hold', 'must not be set: others may wait for the job')
  }
  if (item.onConflict !== undefined) return invalid('onConflict', 'is for jobs with a key')
  return item.admission === undefined ? undefined : invalid('admission', WHY_ADMISSION)
}

/** Throws `CommandInvalid` if an invoke is not well-formed. */
export function checkInvoke(request: InvokeRequest): void {
  checkFields(request, INVOKE, { what: 'request' })
  for (const child of request.children) {
    const error = findItemRefusal(child)
    if (error !== undefined) throw error
  }
}

/** Throws `CommandInvalid` if a filter of flows is not one. */
export function checkFlowFilter(filter: FlowFilter): void {
  checkFields(filter, FILTER, { what: 'filter', refuseUndefined: true })
}

/** Throws `CommandInvalid` if a number of nodes is not one. */
export function checkSize(field: string, value: number | undefined): void {
  const why = optional(value, (own) => count(own, 0, Number.MAX_SAFE_INTEGER))
  if (why !== undefined) throw invalid(field, why)
}

function invalid(field: string, why: string): CommandInvalid {
  return new CommandInvalid(field, why)
}

function faultOf(work: () => void): PawlError | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    return error as PawlError
  }
}
