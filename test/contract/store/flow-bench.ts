/** Short words for tests of flows, batches and invokes. */
import assert from 'node:assert/strict'
import type { AfterGroup } from '../../../src/core/job/links.ts'
import type {
  FlowAnswer,
  FlowItem,
  FlowNode,
  FlowRequest,
  InvokeAnswer,
  InvokeRequest,
} from '../../../src/stores/contract/flows.ts'
import type { Answer, Held } from '../../../src/stores/contract/store.ts'
import { nodeId } from '../../../src/stores/derived-ids.ts'
import { type Bench, failureOf, fenceOf, one } from './bench.ts'

type ItemFields = Parameters<Bench['item']>[0]

/** A job of a flow, in a queue of its own name. */
export function itemOf(bench: Bench, type: string, fields: ItemFields = {}): FlowItem {
  const { command, ...item } = bench.item({ type, queue: type, ...fields })
  const { jobId: _, ...rest } = command
  return { ...item, command: rest }
}

/** Dependencies that must succeed, unless said otherwise. */
export const group = (of: AfterGroup['of'], fields: Partial<AfterGroup> = {}): AfterGroup => ({
  name: 'all',
  of,
  need: 'success',
  list: true,
  ...fields,
})

/** A flow with an id of its own. */
export function flowOf(
  bench: Bench,
  nodes: readonly FlowNode[],
  fields: Partial<FlowRequest> = {},
): FlowRequest {
  return { id: bench.environment.ids.next(), kind: 'flow', nodes, ...fields }
}

/** Creates a flow that must be accepted; returns the ids of its nodes. */
export async function create(
  bench: Bench,
  nodes: readonly FlowNode[],
  fields: Partial<FlowRequest> = {},
): Promise<{ readonly id: string; readonly ids: readonly string[] }> {
  const flow = flowOf(bench, nodes, fields)
  const answer = createdFlow(await bench.store.flows.create(flow))
  return { id: flow.id, ids: answer.jobs.map((job) => job.id) }
}

/** The answer of a creation that must be accepted. */
export function createdFlow(answer: FlowAnswer): Extract<FlowAnswer, { kind: 'created' }> {
  assert.equal(answer.kind, 'created', JSON.stringify(answer))
  return answer as Extract<FlowAnswer, { kind: 'created' }>
}

/** `a` and `b`, and `c` which comes after both. */
export function diamond(bench: Bench, last: Partial<FlowNode> = {}): FlowNode[] {
  return [
    { item: itemOf(bench, 'a') },
    { item: itemOf(bench, 'b') },
    { item: itemOf(bench, 'c'), after: [group([0, 1])], ...last },
  ]
}

/** Claims the one ready job of a queue. */
export async function take(bench: Bench, queue: string): Promise<Held> {
  return one(await bench.claim({ queues: [queue] }))
}

/** Runs the one ready job of a queue to its success. */
export async function succeed(bench: Bench, queue: string, result = '1'): Promise<Answer> {
  return bench.settle(await take(bench, queue), { kind: 'commit' }, result)
}

/** Runs the one ready job of a queue to a terminal failure. */
export async function fail(bench: Bench, queue: string): Promise<Answer> {
  const held = await take(bench, queue)
  return bench.settle(held, { kind: 'fail', failure: failureOf('terminal') })
}

/** Wakes until nothing is left; returns the words of what was moved. */
export async function wake(bench: Bench): Promise<string[]> {
  const words: string[] = []
  await bench.store.flows.wake(10_000, (answers) => {
    for (const one of answers) {
      if (one.kind === 'done') words.push(`${one.job.type} ${one.fact.trigger}`)
      if (one.kind === 'asked') words.push(`${one.job.type} asked`)
    }
  })
  return words.toSorted()
}

/** The states of the nodes of a flow, by number. */
export async function states(bench: Bench, flow: string): Promise<string> {
  const { items } = await bench.store.flows.nodes(flow)
  return items.map(({ job }) => job.blockedReason ?? job.state).join(' ')
}

/** Node n of a flow. */
export const nodeOf = (bench: Bench, flow: string, n: number) => bench.job(nodeId(flow, n))

/** Invokes children in the name of a holder. */
export function invoke(
  bench: Bench,
  held: Held,
  children: readonly FlowItem[],
  fields: Partial<InvokeRequest> = {},
): Promise<InvokeAnswer> {
  const request = { id: held.job.id, fence: fenceOf(held), name: 'kids', n: 1, children }
  return bench.store.flows.invoke({ ...request, ...fields })
}
