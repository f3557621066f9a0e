/** Flows and batches as seen by the program that created them. */
import { CommandInvalid, TransitionRace } from '../../core/errors.ts'
import type { FlowInfo, FlowProgress } from '../../stores/contract/flows.ts'
import { CLIENT, checkRequester } from '../../stores/contract/requester.ts'
import type { Requester, Store } from '../../stores/contract/store.ts'
import { nodeId } from '../../stores/derived-ids.ts'
import { FlowNotFound } from '../../stores/errors.ts'
import type { EnqueueParts } from '../enqueueing.ts'
import { JobHandle } from '../job-handle.ts'
import type { AnyJob } from '../job-types.ts'
import type { JobOutcome } from '../outcome.ts'
import type { HasEnded } from '../results.ts'
import type { FlowNode } from './builder.ts'
import { accepted, type CallbackName, memberItems } from './items.ts'

/** A flow or batch and how far it is. */
export interface FlowStatus extends FlowInfo {
  readonly progress: FlowProgress
}

interface Joined {
  readonly hasEnded?: HasEnded
}

/** What flows and batches have in common. */
abstract class Handle {
  readonly id: string
  /** False if a flow or batch with the same key existed already; the handle is that one's. */
  readonly created: boolean
  readonly #parts: EnqueueParts
  readonly #hasEnded: HasEnded | undefined

  constructor(
    parts: EnqueueParts,
    { id }: Pick<FlowInfo, 'id'>,
    created: boolean,
    { hasEnded }: Joined,
  ) {
    this.#parts = parts
    this.#hasEnded = hasEnded
    this.id = id
    this.created = created
  }

  /** Returns what it is and how far. Throws `FlowNotFound`. */
  status(): Promise<FlowStatus> {
    return statusOf(this.#parts.store, this.id)
  }

  /** Cancels its jobs that have not ended. Returns how many. */
  cancel(requester: Requester = CLIENT): Promise<number> {
    return cancelFlow(this.#parts.store, this.id, requester)
  }

  protected handleOf<Output>(n: number): JobHandle<Output> {
    const ended = this.#hasEnded === undefined ? {} : { hasEnded: this.#hasEnded }
    return new JobHandle<Output>(this.#parts, { id: nodeId(this.id, n) }, this.created, ended)
  }
}

/** A flow as seen by the program that created it. */
export class FlowHandle<Output = unknown> extends Handle {
  /** The handles of its jobs, in the order in which they were added. */
  readonly jobs: readonly JobHandle[]
  readonly #result: number | undefined

  /** Use `pawl.flow`. @internal */
  constructor(
    parts: EnqueueParts,
    flow: Pick<FlowInfo, 'id' | 'size'>,
    created: boolean,
    { result, ...joined }: Joined & { readonly result?: number },
  ) {
    super(parts, flow, created, joined)
    this.#result = result
    this.jobs = Array.from({ length: flow.size }, (_, n) => this.handleOf(n))
  }

  /** The handle of a job, by the node that `f.add` returned. */
  job<NodeOutput>(node: FlowNode<NodeOutput>): JobHandle<NodeOutput> {
    return this.handleOf<NodeOutput>(node.n)
  }

  /**
   * Waits until the outcome of the node is known that the function of `pawl.flow` returned, and
   * returns it, as `result` of a job does. A job that waits for a failed one is parked.
   */
  result(options?: Parameters<JobHandle['result']>[0]): Promise<JobOutcome<Output>> {
    if (this.#result !== undefined) return this.handleOf<Output>(this.#result).result(options)
    const why = 'must not be called: the function of the flow returned no node'
    return Promise.reject(new CommandInvalid('result', why))
  }
}

/** A batch as seen by the program that created it. */
export class BatchHandle<Input = unknown> extends Handle {
  /** The handles of the jobs that run when the members have ended, as far as there are any. */
  readonly callbacks: Readonly<Partial<Record<CallbackName, JobHandle>>>
  readonly #parts: EnqueueParts
  readonly #definition: AnyJob

  /** Use `pawl.batch`, or `pawl.flows.batch`. @internal */
  constructor(
    parts: EnqueueParts,
    flow: Pick<FlowInfo, 'id'>,
    created: boolean,
    own: Joined & { readonly definition: AnyJob; readonly names: readonly CallbackName[] },
  ) {
    super(parts, flow, created, own)
    this.#parts = parts
    this.#definition = own.definition
    this.callbacks = Object.fromEntries(own.names.map((name, n) => [name, this.handleOf(n)]))
  }

  /** How many members there are and how they stand, callbacks not included. */
  async progress(): Promise<FlowProgress> {
    return (await this.status()).progress
  }

  /**
   * Adds members to an open batch, in one transaction, and returns their handles. Throws
   * `BatchClosed` if it is closed.
   */
  async add(inputs: readonly Input[]): Promise<JobHandle[]> {
    const { store } = this.#parts
    const items = await memberItems(this.#parts, this.#definition, inputs)
    for (let tries = 1; ; tries++) {
      const info = await store.flows.get(this.id)
      if (info === undefined) throw new FlowNotFound(this.id)
      const { size: at } = info
      const answer = await store.flows.add(this.id, items, { at })
      const isRace = answer.kind === 'rejected' && answer.error instanceof TransitionRace
      // Another program has added members meanwhile, so the numbers of these are others.
      if (isRace && tries < RACES_MAX) continue
      accepted(answer)
      return inputs.map((_, i) => this.handleOf(at + i))
    }
  }

  /** Closes the batch: no members can be added, and its callbacks may start. */
  async close(requester: Requester = CLIENT): Promise<FlowStatus> {
    const { store } = this.#parts
    const info = await store.flows.close(this.id, checkRequester(requester))
    if (info === undefined) throw new FlowNotFound(this.id)
    return this.status()
  }
}

const RACES_MAX = 100

/** Returns a flow with its progress. Throws `FlowNotFound`. */
export async function statusOf(store: Store, id: string): Promise<FlowStatus> {
  const info = await store.flows.get(id)
  const progress = info && (await store.flows.progress(id))
  if (info === undefined || progress === undefined) throw new FlowNotFound(id)
  return { ...info, progress }
}

const PAGE = 500

/** Cancels the jobs of a flow that have not ended. Returns how many. */
export async function cancelFlow(store: Store, id: string, requester: Requester): Promise<number> {
  checkRequester(requester)
  if ((await store.flows.get(id)) === undefined) throw new FlowNotFound(id)
  let cancelled = 0
  let after: string | undefined
  do {
    const page = await store.flows.nodes(id, { limit: PAGE, ...(after !== undefined && { after }) })
    const open = page.items.filter(({ job }) => job.outcome === null)
    const answers = await store.cancel(
      open.map(({ job }) => job.id),
      requester,
    )
    cancelled += answers.filter(({ kind }) => kind === 'done' || kind === 'asked').length
    after = page.next
  } while (after !== undefined)
  return cancelled
}
