/**
 * Flows, batches and invoked children; see `src/core/job/links.ts`.
 *
 * A flow is a set of jobs (nodes) that are created in one transaction. A node may wait for nodes
 * before it. A batch is a flow whose first nodes are its callbacks, which wait for all members; the
 * other nodes are its members, and more can be added while it is open.
 *
 * The id of node n is `nodeId(flow, n)` (`src/stores/derived-ids.ts`), that of child i of an invoke
 * is `invokedId(parent, name, n, i)`. So a caller knows the ids before anything is written.
 */
import type { PawlError } from '../../core/errors.ts'
import type { Fence } from '../../core/job/commands.ts'
import type { Fact } from '../../core/job/facts.ts'
import type { Job, JobError } from '../../core/job/job.ts'
import type { AfterGroup, Need, OnFailure } from '../../core/job/links.ts'
import type { Outcome } from '../../core/lifecycles/lifecycle.ts'
import type { TraceContext } from '../../core/trace.ts'
import type { PageOptions } from './filters.ts'
import type { Page } from './reading.ts'
import type { Answer, EnqueueItem, EnqueueOptions, OnMoved, Requester } from './store.ts'

/** How many nodes one call may create. */
export const NODES_MAX = 20_000
/** How many links one call may create. */
export const LINKS_MAX = 200_000

/**
 * A job of a flow. The id in its command is ignored: it is derived. A key, `hold`, an admission,
 * and `runAt` of a node with `after`, are refused with `CommandInvalid`: such a job might be
 * another one, or start before its dependencies.
 */
export interface FlowNode {
  readonly item: FlowItem
  /** What it waits for; nothing if absent. Names must differ; ranges name earlier nodes only. */
  readonly after?: readonly AfterGroup[]
  /** 'park' if absent. */
  readonly onFailure?: OnFailure
}

/** A job to be created whose id is derived. */
export type FlowItem = Omit<EnqueueItem, 'command'> & {
  readonly command: Omit<EnqueueItem['command'], 'jobId' | 'flow' | 'awaited' | 'after'>
}

export type FlowKind = 'flow' | 'batch'

/** A flow or a batch to be created. */
export interface FlowRequest {
  /** A new UUID. Repeating a call with the same id creates nothing. */
  readonly id: string
  readonly kind: FlowKind
  /** At most one flow or batch has a key, while it exists. */
  readonly key?: string
  /** For a batch: callbacks first, whose groups are of 'members', then the members. */
  readonly nodes: readonly FlowNode[]
  /** For a batch: members may be added until `close`. */
  readonly open?: boolean
}

/** The result of a creation. It is all or nothing. */
export type FlowAnswer =
  | { readonly kind: 'created'; readonly flow: FlowInfo; readonly jobs: readonly Job[] }
  /** The key belongs to this flow. */
  | { readonly kind: 'existing'; readonly flow: FlowInfo }
  | {
      readonly kind: 'rejected'
      readonly error: PawlError
      /** The number of the node that is refused, if it is one of them. */
      readonly node?: number
    }

/**
 * The state of a flow: `open` while a job has not ended or members can be added, `attention` if a
 * job is parked, `done` if all jobs have ended.
 */
export type FlowState = 'open' | 'attention' | 'done'

/** A flow or batch, without its nodes. */
export interface FlowInfo {
  readonly id: string
  readonly kind: FlowKind
  readonly key: string | null
  readonly createdAt: number
  /** How many nodes it has, callbacks included. */
  readonly size: number
  /** How many of them are callbacks of a batch: nodes 0 to this. */
  readonly callbacks: number
  /** For a batch: members may be added. */
  readonly open: boolean
  readonly state: FlowState
}

/** How far a flow is: how many nodes are in each of these, callbacks not included. */
export interface FlowProgress {
  readonly members: number
  readonly succeeded: number
  readonly failed: number
  readonly cancelled: number
  readonly parked: number
  /** Neither ended nor parked. */
  readonly live: number
}

/** Which flows a list shows; conditions are combined. */
export interface FlowFilter {
  readonly state?: FlowState
  readonly kind?: FlowKind
  readonly key?: string
}

/** A node of a flow, or a child of a job. */
export interface FlowNodeInfo {
  readonly n: number
  /** The job, as it is or as it was at the moment asked for. */
  readonly job: Job
  /** What it waits or has waited for; empty if it has no dependencies. */
  readonly after: readonly AfterGroup[]
  readonly onFailure: OnFailure
  /** For children: the name and number of the invoke, as `<name>/<number>`. */
  readonly as?: string
  /** When its dependencies had all arrived, or when it was created if it has none. */
  readonly releasedAt?: number
}

/** How a dependency or a child ended. */
export interface DependencyEnd {
  readonly id: string
  readonly type: string
  /** Null if it has not ended, which only a forced waiter sees. */
  readonly outcome: Outcome | null
  /** The number of the fact that counts: later redrives do not change the answer. */
  readonly seq: number | null
  /** The result, as JSON text, if it succeeded with one. */
  readonly result?: string
  readonly error: JobError | null
  readonly reason: string | null
}

/** The dependencies of a job, by group, in the order of its definition. */
export interface AfterEnds {
  readonly name: string
  readonly need: Need
  readonly list: boolean
  readonly ends: readonly DependencyEnd[]
}

/** What an attempt invokes, under its fence. */
export interface InvokeRequest {
  /** The parent. */
  readonly id: string
  readonly fence: Fence
  readonly name: string
  /** From 1: the n-th invoke of this name in the job. */
  readonly n: number
  /** In order. Their keys and admissions are refused, as for nodes. */
  readonly children: readonly FlowItem[]
  /** How many of them may be under way at once; all if absent. */
  readonly concurrency?: number
  /** What happens to open children if the parent ends without success; 'cancel' if absent. */
  readonly onParentEnd?: 'cancel' | 'abandon'
  readonly trace?: TraceContext
}

/** The result of an invoke: all children have ended, or the attempt has ended because it waits. */
export type InvokeAnswer =
  | {
      readonly kind: 'over'
      readonly ends: readonly DependencyEnd[]
      readonly job: Job
      readonly fact?: Fact
    }
  | { readonly kind: 'suspended'; readonly job: Job; readonly fact: Fact }
  | { readonly kind: 'rejected'; readonly error: PawlError }

/** A waiter whose links are not as they should be. */
export interface LinkFault {
  readonly waiter: string
  readonly what: string
  /** A job that it waits for, or the fact that names it, is gone: no repair can bring it back. */
  readonly isLost?: true
}

export interface FlowTables {
  /**
   * Creates all jobs of a flow or batch, or none; durable when it resolves, or when `tx` commits.
   */
  create(flow: FlowRequest, options?: EnqueueOptions): Promise<FlowAnswer>
  /**
   * Adds members to an open batch, numbered from `size` on. `at` is the size of the batch as the
   * caller knows it: if members with these numbers exist and have these types, an earlier call has
   * added them, and nothing is written. Rejects with `BatchClosed` if the batch is closed, and with
   * `TransitionRace` if others have added members since.
   */
  add(
    id: string,
    members: readonly FlowItem[],
    options?: Pick<EnqueueOptions, 'requester'> & { readonly at?: number },
  ): Promise<FlowAnswer>
  /** Closes a batch. Callbacks whose members have all ended are released at once. */
  close(id: string, requester: Requester, onMoved?: OnMoved): Promise<FlowInfo | undefined>
  /**
   * Releases, parks or ends jobs whose dependencies have ended, and cancels the children of ended
   * parents; looks at up to `limit` links. Returns at how many it has looked: call it again while
   * it returns `limit`. Call it after a verb whose answers have a job for which `concernsOthers` is
   * true; workers also call it from time to time, in case a process died in between. Writes nothing
   * if there is nothing to look at.
   */
  wake(limit: number, onMoved?: OnMoved): Promise<number>
  /** The flow, or `undefined`. */
  get(id: string): Promise<FlowInfo | undefined>
  getByKey(key: string): Promise<FlowInfo | undefined>
  /** Flows by keyset, newest first. */
  list(filter: FlowFilter, page?: PageOptions): Promise<Page<FlowInfo>>
  progress(id: string): Promise<FlowProgress | undefined>
  /**
   * Nodes of a flow, or invoked children of a job, by number. With `at`, as they were at that time;
   * nodes that were created later are left out.
   */
  nodes(id: string, page?: PageOptions & { readonly at?: number }): Promise<Page<FlowNodeInfo>>
  /** How the dependencies of a job ended; empty if it has none. */
  after(id: string): Promise<AfterEnds[]>
  /** The jobs that a job waits for now, at most `limit`. */
  waitsFor(id: string, limit: number): Promise<Job[]>
  /** The jobs that wait for a job now, at most `limit`. */
  awaitedBy(id: string, limit: number): Promise<Job[]>
  /**
   * Creates children and waits for them, under the fence of an attempt, in one transaction. When
   * all have ended, the same call in a later attempt records that, and returns how they ended; from
   * then on its answer is the same, also if a child is redriven. The same call under the same fence
   * may be repeated if its reply was lost.
   */
  invoke(request: InvokeRequest): Promise<InvokeAnswer>
  /** What is wrong with the links of waiters, at most `limit`; for the doctor. */
  faults(limit: number): Promise<LinkFault[]>
  /** Writes the links of waiters as their facts say, and decides about the waiters. */
  relink(waiters: readonly string[]): Promise<void>
}

/** Returns true if a verb has ended or redriven a job with links: `wake` may then have work. */
export function concernsOthers(answer: Answer): boolean {
  if (answer.kind === 'rejected' || answer.job.links === 0) return false
  const isRedriven = answer.kind === 'done' && answer.fact.trigger === 'redrive'
  return answer.job.outcome !== null || isRedriven
}
