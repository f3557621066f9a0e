/** What connects a job with others: its flow or parent, what it waits for, and its children. */
import type { Job } from '../core/job/job.ts'
import { LINKS } from '../core/job/links.ts'
import type { AfterEnds, FlowInfo, FlowNodeInfo } from '../stores/contract/flows.ts'
import type { Store } from '../stores/contract/store.ts'

export interface JobLinks {
  readonly flow: FlowInfo | null
  /** The job that has invoked it. */
  readonly parent: Job | null
  /** What it waits or has waited for, with how each ended. */
  readonly after: readonly AfterEnds[]
  /** The jobs that it waits for now; the first ones. */
  readonly waitsFor: readonly Job[]
  /** The jobs that wait for it now; the first ones. */
  readonly awaitedBy: readonly Job[]
  /** The jobs that it has invoked; the first ones. */
  readonly children: readonly FlowNodeInfo[]
}

/** How many jobs of each kind are returned. */
const LINKED_MAX = 20

const NONE = { flow: null, parent: null, after: [], waitsFor: [], awaitedBy: [], children: [] }

/** Reads the links of a job. Jobs without links cost no query. */
export async function linksOf(store: LinkReads, job: Job): Promise<JobLinks> {
  if (job.flow === null && job.links === 0) return NONE
  const { id, links } = job
  const { flows } = store
  const flow = job.flow === null ? undefined : await flows.get(job.flow)
  const isChild = job.flow !== null && flow === undefined
  const hasChildren = (links & LINKS.children) !== 0
  return {
    flow: flow ?? null,
    parent: (isChild ? await store.get(job.flow) : undefined) ?? null,
    after: flow === undefined ? [] : await flows.after(id),
    waitsFor: (links & LINKS.waits) === 0 ? [] : await flows.waitsFor(id, LINKED_MAX),
    awaitedBy: (links & LINKS.awaited) === 0 ? [] : await flows.awaitedBy(id, LINKED_MAX),
    children: hasChildren ? (await flows.nodes(id, { limit: LINKED_MAX })).items : [],
  }
}

type LinkReads = Pick<Store, 'flows' | 'get'>
