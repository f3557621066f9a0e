/** Flows, batches and invoked children, behind the contract of `../contract/flows.ts`. */
import type { JsonBounds } from '../../core/canonical-json.ts'
import type { PawlError } from '../../core/errors.ts'
import type { Fact } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import { checkPage, type PageOptions } from '../contract/filters.ts'
import {
  checkFlowFilter,
  checkInvoke,
  checkSize,
  findFlowFault,
  findItemRefusal,
} from '../contract/flow-checks.ts'
import type {
  AfterEnds,
  DependencyEnd,
  FlowAnswer,
  FlowFilter,
  FlowInfo,
  FlowItem,
  FlowNodeInfo,
  FlowProgress,
  FlowRequest,
  FlowTables,
  InvokeAnswer,
  InvokeRequest,
  LinkFault,
} from '../contract/flows.ts'
import { CLIENT, checkRequester } from '../contract/requester.ts'
import { checkCursor, checkEnqueue, checkLimit, findPayloadFault } from '../contract/requests.ts'
import type { EnqueueOptions, OnMoved, Page, Requester, Store } from '../contract/store.ts'
import {
  type FlowCounts,
  type FlowRow,
  type LinkNews,
  type LookRow,
  type NewLink,
  type SeenFlowRow,
  toFlow,
} from '../link-rows.ts'
import type { FactRow } from '../rows.ts'
import { FlowReading } from './flow-reading.ts'
import { addMembers, type Created, closeBatch, createFlow, refusalOf } from './flows.ts'
import { type ChildEnd, invoke } from './invoke.ts'
import { examineWaiters, relink } from './link-doctor.ts'
import type { Performed } from './operations.ts'
import type { TableAccess } from './run-tables.ts'
import { wake } from './wake.ts'

/** A link with the number of the fact by which its awaited job ended. */
export interface LinkEnd {
  readonly awaited: string
  readonly part: number
  readonly seq: number | null
}

/** The result of a job, as JSON text. */
export interface ResultRow {
  readonly id: string
  readonly payload: string | null
}

/** Which flows a list reads. */
export interface FlowQuery extends FlowFilter {
  /** Only flows with an id below this one. */
  readonly below: string | undefined
  readonly limit: number
}

/** The operations of these verbs. */
export interface FlowOperations {
  /** Inserts a row; returns false if there is one with this id or key. */
  insertFlow(row: FlowRow): boolean
  flowRows(ids: readonly string[]): readonly FlowRow[]
  flowByKey(key: string): FlowRow | undefined
  /** Locks flows, in one order everywhere. `share` only keeps others from changing them. */
  lockFlows(ids: readonly string[], lock: 'share' | 'update'): readonly FlowRow[]
  /** Writes the size and the openness of a flow that was locked. */
  writeFlow(row: FlowRow): void
  insertLinks(links: readonly NewLink[]): void
  /** Whether there are links that were not examined. */
  hasLinkNews(): boolean
  /** Locks links that were not examined; those that others lock are left out. */
  linkNews(limit: number): readonly LinkNews[]
  lookAtLinks(waiters: readonly string[]): readonly LookRow[]
  /** Marks links as examined that are as they were read. */
  examineLinks(news: readonly LinkNews[]): void
  /** The facts that created these jobs. */
  createFacts(ids: readonly string[]): readonly Fact[]
  /** Those of these jobs that exist, and how they ended. */
  childEnds(parent: string, ids: readonly string[]): readonly ChildEnd[]
  /** Flows, newest first, with what their jobs say. */
  seenFlows(query: FlowQuery): readonly SeenFlowRow[]
  seenFlow(id: string): SeenFlowRow | undefined
  /** How far a flow is; callbacks, the first nodes, are left out. */
  flowCounts(id: string, callbacks: number): FlowCounts
  /** The ids of nodes with a higher number, in order. */
  nodeIds(flow: string, after: number, limit: number): readonly { id: string; node: number }[]
  /** The facts of these jobs up to a time, in order. */
  factsUntil(ids: readonly string[], at: number): readonly (FactRow & { job_id: string })[]
  /** The links of a waiter. */
  linksOfWaiter(waiter: string): readonly LinkEnd[]
  /** The jobs that a waiter waits for now, or that wait for a job now. */
  openLinks(id: string, side: 'waiter' | 'awaited', limit: number): readonly string[]
  results(ids: readonly string[]): readonly ResultRow[]
}

/** Runs a verb in a transaction of the user. */
export type Join = <T>(
  options: Pick<EnqueueOptions, 'tx' | 'onJoined'>,
  verb: Performed<T>,
) => Promise<T>

/** What flows need of their store beside its tables. */
interface Parts {
  readonly access: TableAccess
  readonly join: Join
  readonly bounds: JsonBounds
  readonly store: Pick<Store, 'getMany' | 'asOf' | 'now'>
}

/** How many links one transaction examines. */
const EXAMINED_AT_ONCE = 1000
/** How many transactions one call of `wake` may use. */
const ROUNDS_MAX = 1000
const PAGE = 100
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const NUMBER = /^\d{1,15}$/

export class StoredFlows implements FlowTables {
  readonly #parts: Parts
  readonly #reading: FlowReading

  constructor(parts: Parts) {
    this.#parts = parts
    this.#reading = new FlowReading(parts.access, parts.store)
  }

  async create(flow: FlowRequest, options: EnqueueOptions = {}): Promise<FlowAnswer> {
    const { requester = CLIENT, tx, onJoined } = checkEnqueue(options)
    const fault = findFlowFault(flow) ?? this.#inputFault(flow.nodes.map(({ item }) => item))
    if (fault !== undefined) return { kind: 'rejected', ...fault }
    return this.#answer(() =>
      tx === undefined
        ? this.#parts.access.change('flows.create', (at) => createFlow(at, flow, requester))
        : this.#parts.join({ tx, ...(onJoined && { onJoined }) }, (at) =>
            createFlow(at, flow, requester),
          ),
    )
  }

  async add(
    id: string,
    members: readonly FlowItem[],
    options: Pick<EnqueueOptions, 'requester'> & { readonly at?: number } = {},
  ): Promise<FlowAnswer> {
    const { requester = CLIENT, at } = options
    checkRequester(requester)
    checkSize('at', at)
    const refusal = members.map(findItemRefusal)
    const node = refusal.findIndex((error) => error !== undefined)
    if (node >= 0) return { kind: 'rejected', error: refusal[node] as PawlError, node }
    const fault = this.#inputFault(members)
    if (fault !== undefined) return { kind: 'rejected', ...fault }
    return this.#answer(() =>
      this.#parts.access.change('flows.add', (tx) => addMembers(tx, id, members, requester, at)),
    )
  }

  async #answer(work: () => Promise<Created>): Promise<FlowAnswer> {
    try {
      const { row, jobs } = await work()
      const flow = toFlow(row)
      return jobs === undefined ? { kind: 'existing', flow } : { kind: 'created', flow, jobs }
    } catch (error) {
      const refusal = refusalOf(error)
      if (refusal === undefined) throw error
      return refusal
    }
  }

  #inputFault(items: readonly FlowItem[]): { readonly error: PawlError; node: number } | undefined {
    for (const [node, { input }] of items.entries()) {
      const error = findPayloadFault('input', input, this.#parts.bounds)
      if (error !== undefined) return { error, node }
    }
    return undefined
  }

  async close(id: string, requester: Requester, onMoved?: OnMoved): Promise<FlowInfo | undefined> {
    checkRequester(requester)
    if (!UUID.test(id)) return undefined
    const closed = await this.#parts.access.change('flows.close', (tx) => closeBatch(tx, id))
    if (closed === undefined) return undefined
    onMoved?.(closed.answers)
    return this.get(id)
  }

  async wake(limit: number, onMoved?: OnMoved): Promise<number> {
    checkLimit(limit)
    const { access } = this.#parts
    let total = 0
    for (let rounds = 0; total < limit && rounds < ROUNDS_MAX; rounds++) {
      // Idle workers call this often: without news nothing is locked.
      if (!(await access.look((tx) => tx.hasLinkNews()))) break
      const most = Math.min(limit - total, EXAMINED_AT_ONCE)
      const { looked, answers } = await access.change('flows.wake', (tx) => wake(tx, most))
      onMoved?.(answers)
      total += looked
      if (looked === 0) break
    }
    return total
  }

  async get(id: string): Promise<FlowInfo | undefined> {
    if (!UUID.test(id)) return undefined
    const row = await this.#parts.access.look((tx) => tx.seenFlow(id))
    return row && toFlow(row)
  }

  async getByKey(key: string): Promise<FlowInfo | undefined> {
    const row = await this.#parts.access.look((tx) => tx.flowByKey(key))
    return row && this.get(row.id)
  }

  async list(filter: FlowFilter, page: PageOptions = {}): Promise<Page<FlowInfo>> {
    checkFlowFilter(filter)
    checkPage(page)
    checkCursor('after', page.after, UUID)
    const { limit = PAGE, after: below } = page
    const rows = await this.#parts.access.look((tx) => tx.seenFlows({ ...filter, below, limit }))
    const last = rows[rows.length - 1]
    const items = rows.map(toFlow)
    return rows.length === limit && last !== undefined ? { items, next: last.id } : { items }
  }

  async progress(id: string): Promise<FlowProgress | undefined> {
    const flow = await this.get(id)
    if (flow === undefined) return undefined
    const counts = await this.#parts.access.look((tx) => tx.flowCounts(id, flow.callbacks))
    const { members, succeeded, failed, cancelled, parked } = counts
    return { ...counts, live: members - succeeded - failed - cancelled - parked }
  }

  async nodes(
    id: string,
    page: PageOptions & { readonly at?: number } = {},
  ): Promise<Page<FlowNodeInfo>> {
    const { at, ...rest } = page
    checkPage(rest)
    checkCursor('after', page.after, NUMBER)
    checkSize('at', at)
    if (!UUID.test(id)) return { items: [] }
    return this.#reading.nodes(id, Number(page.after ?? -1), page.limit ?? PAGE, at)
  }

  async after(id: string): Promise<AfterEnds[]> {
    return UUID.test(id) ? this.#reading.after(id) : []
  }

  waitsFor(id: string, limit: number): Promise<Job[]> {
    return this.#linked(id, 'waiter', limit)
  }

  awaitedBy(id: string, limit: number): Promise<Job[]> {
    return this.#linked(id, 'awaited', limit)
  }

  async #linked(id: string, side: 'waiter' | 'awaited', limit: number): Promise<Job[]> {
    checkLimit(limit)
    if (!UUID.test(id)) return []
    const ids = await this.#parts.access.look((tx) => tx.openLinks(id, side, limit))
    return ids.length === 0 ? [] : this.#parts.store.getMany(ids)
  }

  async faults(limit: number): Promise<LinkFault[]> {
    checkLimit(limit)
    const { access } = this.#parts
    const suspects = await access.look((tx) => examineWaiters(tx, limit))
    if (suspects.length === 0) return []
    // A change between two statements looks like a fault, so suspects are looked at again.
    const ids = suspects.map(({ waiter }) => waiter)
    const again = await access.look((tx) => examineWaiters(tx, limit, ids))
    return again.filter(({ waiter, what }) =>
      suspects.some((one) => one.waiter === waiter && one.what === what),
    )
  }

  async relink(waiters: readonly string[]): Promise<void> {
    const ids = waiters.filter((id) => UUID.test(id))
    if (ids.length > 0) await this.#parts.access.change('flows.relink', (tx) => relink(tx, ids))
  }

  async invoke(request: InvokeRequest): Promise<InvokeAnswer> {
    checkInvoke(request)
    const fault = this.#inputFault(request.children)
    if (fault !== undefined) return { kind: 'rejected', error: fault.error }
    try {
      const { access } = this.#parts
      const answer = await access.change('flows.invoke', (tx) => invoke(tx, request))
      if (answer.kind !== 'over') return answer
      const ends: DependencyEnd[] = await this.#reading.ends(answer.ends)
      return { ...answer, ends }
    } catch (error) {
      const refusal = refusalOf(error)
      if (refusal === undefined) throw error
      return { kind: 'rejected', error: refusal.error }
    }
  }
}
