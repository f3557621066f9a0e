/** Creates flows and batches, adds members and closes batches; see `../contract/flows.ts`. */
import { type PawlError, TransitionRace } from '../../core/errors.ts'
import type { Job } from '../../core/job/job.ts'
import { type After, type AfterGroup, nodesOf } from '../../core/job/links.ts'
import { isCallbackNode } from '../contract/flow-checks.ts'
import type { FlowItem, FlowNode, FlowRequest } from '../contract/flows.ts'
import type { Answer, EnqueueItem, Requester } from '../contract/store.ts'
import { nodeId } from '../derived-ids.ts'
import { BatchClosed, FlowNotFound } from '../errors.ts'
import { type FlowRow, type NewLink, needOf, type SeenFlowRow } from '../link-rows.ts'
import type { Tx, Verb } from './operations.ts'
import { settleWaiters } from './wake.ts'

/** The errors that were thrown to refuse a flow as a whole, and the node that each is about. */
const refusals = new WeakMap<object, { readonly node?: number }>()

/** Returns an error to throw inside a transaction, so that nothing of a flow remains. */
function refused(error: PawlError, node?: number): PawlError {
  refusals.set(error, node === undefined ? {} : { node })
  return error
}

/** The refusal that was thrown; `undefined` for any other error. */
export function refusalOf(
  error: unknown,
): { readonly kind: 'rejected'; readonly error: PawlError; readonly node?: number } | undefined {
  const refusal = typeof error === 'object' && error !== null ? refusals.get(error) : undefined
  return refusal && { kind: 'rejected', error: error as PawlError, ...refusal }
}

/** What was written: new jobs, or nothing because there was such a flow. */
export interface Created {
  readonly row: SeenFlowRow
  /** Absent if the key belongs to this flow. */
  readonly jobs?: readonly Job[]
}

/** Creates the jobs of a flow and its links. */
export function* createFlow(tx: Tx, flow: FlowRequest, requester: Requester): Verb<Created> {
  const { id, kind, key = null, nodes, open = false } = flow
  const callbacks = kind === 'batch' ? nodes.filter(isCallbackNode).length : 0
  const row: FlowRow = {
    id,
    kind,
    key,
    created_at: tx.now,
    size: nodes.length,
    callbacks,
    open: open ? 1 : 0,
  }
  if (!(yield* tx.insertFlow(row))) return yield* existing(tx, flow)
  yield* tx.refreshMachines()
  const links = linksOf(flow)
  const awaited = new Set(links.map((link) => link.awaited))
  const isMember = (n: number) => callbacks > 0 && n >= callbacks
  const items = nodes.map((node, n): EnqueueItem => {
    const jobId = nodeId(id, n)
    return itemOf(node.item, {
      jobId,
      flow: { id, n },
      ...((awaited.has(jobId) || isMember(n)) && { awaited: true }),
      ...(node.after !== undefined && { after: afterOf(node) }),
    })
  })
  const jobs = yield* createAll(tx, items, requester)
  yield* tx.insertLinks(links)
  const waiting = new Set(links.map(({ waiter }) => waiter))
  const free = jobs.filter((job, n) => nodes[n]?.after !== undefined && !waiting.has(job.id))
  // An empty batch is decided at once; so is a node with an empty list of dependencies.
  const answers = open ? [] : yield* settle(tx, free)
  const moved = new Map(
    answers.flatMap((one) => (one.kind === 'done' ? [[one.job.id, one.job]] : [])),
  )
  return { row: yield* seen(tx, id), jobs: jobs.map((job) => moved.get(job.id) ?? job) }
}

function settle(tx: Tx, jobs: readonly Job[]): Verb<readonly Answer[]> {
  return settleWaiters(tx, { waiters: jobs.map(({ id }) => id), flows: [], orphans: [] })
}

/** The flow with what its jobs say, in the same transaction. */
function* seen(tx: Tx, id: string): Verb<SeenFlowRow> {
  const row = yield* tx.seenFlow(id)
  // The user has ended the transaction that was joined.
  if (row === undefined) throw new TransitionRace(`of flow ${id}`)
  return row
}

/** The flow that has the id, from an earlier try of this call, or the key. */
function* existing(tx: Tx, { id, key }: FlowRequest): Verb<Created> {
  const [own] = yield* tx.flowRows([id])
  if (own !== undefined) return { row: yield* seen(tx, id), jobs: [] }
  const row = key === undefined ? undefined : yield* tx.flowByKey(key)
  // It was removed between the two statements.
  if (row === undefined) throw new TransitionRace(`of flow ${id}`)
  return { row: yield* seen(tx, row.id) }
}

function afterOf({ after = [], onFailure = 'park' }: FlowNode): After {
  return { groups: after, onFailure }
}

/** What the verbs of flows set in the command of a job. */
type Linked = Pick<EnqueueItem['command'], 'jobId' | 'flow' | 'awaited' | 'after'>

/** A job with its derived id and its place. */
export function itemOf(item: FlowItem, linked: Linked): EnqueueItem {
  return { ...item, command: { ...item.command, ...linked } }
}

/** Creates jobs, all of them. */
export function* createAll(
  tx: Tx,
  items: readonly EnqueueItem[],
  requester: Requester,
): Verb<Job[]> {
  const answers = items.length === 0 ? [] : yield* tx.createJobs(items, requester)
  return answers.map((answer, n) => {
    if (answer.kind === 'created') return answer.job
    if (answer.kind === 'rejected') throw refused(answer.error, n)
    // Jobs without a key are created or refused.
    throw new TransitionRace(items[n]?.command.jobId ?? '')
  })
}

/** The links of all nodes. */
function linksOf({ id, nodes, kind }: FlowRequest): NewLink[] {
  const first = kind === 'batch' ? nodes.filter(isCallbackNode).length : 0
  const members = nodes.map((_, n) => n).slice(first)
  return nodes.flatMap(({ after = [] }, n) => {
    const waiter = nodeId(id, n)
    return after.flatMap(({ of, need }, part) =>
      (of === 'members' ? members : distinct(nodesOf(of))).map((node) => ({
        awaited: nodeId(id, node),
        waiter,
        part,
        need: needOf(need),
      })),
    )
  })
}

function distinct(nodes: readonly number[]): number[] {
  return [...new Set(nodes)]
}

/** Adds members to an open batch. */
export function* addMembers(
  tx: Tx,
  id: string,
  members: readonly FlowItem[],
  requester: Requester,
  at: number | undefined,
): Verb<Created> {
  const [row] = yield* tx.lockFlows([id], 'update')
  if (row === undefined) throw refused(new FlowNotFound(id))
  if (at !== undefined && row.size !== at) {
    // An earlier try of this call has added them, or others have.
    if (row.size === at + members.length) return { row: yield* seen(tx, id), jobs: [] }
    throw refused(new TransitionRace(`of batch ${id}`))
  }
  if (row.open === 0) throw refused(new BatchClosed(id))
  yield* tx.refreshMachines()
  const { size, callbacks } = row
  const items = members.map((item, i) =>
    itemOf(item, {
      jobId: nodeId(id, size + i),
      flow: { id, n: size + i },
      ...(callbacks > 0 && { awaited: true }),
    }),
  )
  const jobs = yield* createAll(tx, items, requester)
  const groups = yield* callbackGroups(tx, row)
  yield* tx.insertLinks(
    groups.flatMap(({ waiter, part, group }) =>
      jobs.map((job) => ({ awaited: job.id, waiter, part, need: needOf(group.need) })),
    ),
  )
  const after = { ...row, size: size + members.length }
  yield* tx.writeFlow(after)
  return { row: yield* seen(tx, id), jobs }
}

interface CallbackGroup {
  readonly waiter: string
  readonly part: number
  readonly group: AfterGroup
}

/** What the callbacks of a batch need of its members, by the facts that created them. */
function* callbackGroups(tx: Tx, row: FlowRow): Verb<CallbackGroup[]> {
  if (row.callbacks === 0) return []
  const facts = yield* tx.createFacts(callbacksOf(row))
  return facts.flatMap(({ jobId, after }) =>
    (after?.groups ?? []).map((group, part) => ({ waiter: jobId, part, group })),
  )
}

/** The ids of the callbacks of a batch. */
function callbacksOf({ id, callbacks }: FlowRow): string[] {
  return Array.from({ length: callbacks }, (_, n) => nodeId(id, n))
}

/** What closing a batch has done. */
export interface Closed {
  readonly row: FlowRow
  readonly answers: readonly Answer[]
}

/** Closes a batch, and decides about its callbacks. */
export function* closeBatch(tx: Tx, id: string): Verb<Closed | undefined> {
  const [row] = yield* tx.lockFlows([id], 'update')
  if (row === undefined) return undefined
  if (row.open === 0) return { row, answers: [] }
  const after = { ...row, open: 0 }
  yield* tx.writeFlow(after)
  const waiters = callbacksOf(row)
  const answers = yield* settleWaiters(tx, { waiters, flows: [], orphans: [] })
  return { row: after, answers }
}
