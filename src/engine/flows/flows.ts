/** Reads flows and batches, and acts on all jobs of one; see `pawl.flows`. */
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import type { FlowFilter, FlowInfo, FlowNodeInfo } from '../../stores/contract/flows.ts'
import { CLIENT } from '../../stores/contract/requester.ts'
import type { Page, Requester, Store } from '../../stores/contract/store.ts'
import { FlowNotFound } from '../../stores/errors.ts'
import type { EnqueueParts } from '../enqueueing.ts'
import type { JobKey } from '../job-types.ts'
import type { Operator, OperatorIdentity } from '../operators/operators.ts'
import type { OperatorReport } from '../operators/report.ts'
import { BatchHandle, cancelFlow, type FlowStatus, statusOf } from './handles.ts'

/** Which part of a list is read. */
export interface FlowPageOptions {
  /** Entries per page; 100 if absent. */
  readonly limit?: number
  /** The cursor `next` of a page: the list continues after it. */
  readonly after?: string
}

/** Which nodes are read, and as they were when. */
export interface FlowNodesOptions extends FlowPageOptions {
  /** Shows the nodes as they were at this time. */
  readonly at?: Date
}

const PAGE: FieldChecks<FlowPageOptions> = { limit: unchecked, after: unchecked }
const NODES: FieldChecks<FlowNodesOptions> = { ...PAGE, at: unchecked }
const LIMIT = 100

/** What `pawl.flows` is built from. */
interface FlowsParts {
  readonly store: Store
  readonly enqueue: () => EnqueueParts
  readonly operator: (identity: OperatorIdentity) => Operator
}

/** Reads flows and batches, and acts on all jobs of one. */
export class Flows {
  readonly #parts: FlowsParts

  /** Use `pawl.flows`. @internal */
  constructor(parts: FlowsParts) {
    this.#parts = parts
  }

  /** A flow or batch and how far it is; undefined if there is none with this id. */
  async get(id: string): Promise<FlowStatus | undefined> {
    return statusOf(this.#parts.store, id).catch(absent)
  }

  /** The same by its key. */
  async getByKey(key: string): Promise<FlowStatus | undefined> {
    const { store } = this.#parts
    const found = await store.flows.getByKey(key)
    return found && statusOf(store, found.id).catch(absent)
  }

  /** A page of flows and batches, newest first. */
  list(filter: FlowFilter = {}, page: FlowPageOptions = {}): Promise<Page<FlowInfo>> {
    checkFields(page, PAGE, { what: 'options' })
    return this.#parts.store.flows.list(filter, { limit: LIMIT, ...page })
  }

  /** A page of the jobs of a flow or batch, by number, with what each comes after. */
  async nodes(id: string, options: FlowNodesOptions = {}): Promise<Page<FlowNodeInfo>> {
    checkFields(options, NODES, { what: 'options' })
    const { at, ...page } = options
    const when = at === undefined ? {} : { at: at.getTime() }
    return this.#parts.store.flows.nodes(id, { limit: LIMIT, ...page, ...when })
  }

  /** The handle of a batch by its id, for its members' job type. Throws `FlowNotFound`. */
  async batch<Input, Output>(
    definition: JobKey<Input, Output>,
    id: string,
  ): Promise<BatchHandle<Input>> {
    const { store, enqueue } = this.#parts
    const info = await store.flows.get(id)
    if (info?.kind !== 'batch') throw new FlowNotFound(id)
    return new BatchHandle<Input>(enqueue(), info, false, { definition, names: [] })
  }

  /** Cancels the jobs of a flow or batch that have not ended. Returns how many. */
  cancel(id: string, requester: Requester = CLIENT): Promise<number> {
    return cancelFlow(this.#parts.store, id, requester)
  }

  /**
   * Makes the failed and parked jobs of a flow or batch ready again, in the name of an operator.
   * Jobs that wait for them go on when they succeed.
   */
  async redrive(id: string, identity: OperatorIdentity): Promise<OperatorReport> {
    return this.#parts.operator(identity).redriveFlow(id)
  }
}

function absent(error: unknown): undefined {
  if (error instanceof FlowNotFound) return undefined
  throw error
}
