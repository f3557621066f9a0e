/** Flows and batches: lists, nodes, graphs and progress; commands of operators; open batches. */
import { JobNotFound } from '../../core/errors.ts'
import type { Job } from '../../core/job/job.ts'
import { decodeValue } from '../../core/values.ts'
import { itemBy } from '../../engine/enqueueing.ts'
import type { AfterEnds, FlowAnswer, FlowFilter, FlowInfo } from '../../stores/contract/flows.ts'
import type { EnqueueItem } from '../../stores/contract/store.ts'
import { FlowNotFound } from '../../stores/errors.ts'
import { RequestRefused } from '../errors.ts'
import { findFlow, forgetFlow, readFlow, watchFlow } from '../flow-view.ts'
import { FLOW_KINDS, FLOW_STATES } from '../link-components.ts'
import { linksOf } from '../links.ts'
import { DRY_RUN, operatorOf, requesterOf, WHO, WHY } from '../operating.ts'
import { ENQUEUE, OPERATE, PAGING, pageOf, READ, type Route, type RouteCall } from '../route.ts'
import {
  anything,
  count,
  flag,
  list,
  name,
  nullable,
  oneOf,
  page,
  priority,
  priorityIn,
  record,
  ref,
  text,
  time,
} from '../schema.ts'
import { jobTypeOf, LIFECYCLE } from './jobs-enqueue.ts'

async function listFlows(call: RouteCall): Promise<unknown> {
  const { after: _, limit: __, progress = false, ...filter } = call.query
  const { flows } = call.pawl.store
  const found = await flows.list(filter as FlowFilter, pageOf(call))
  const items: object[] = []
  for (const flow of found.items) {
    items.push({ flow, progress: (progress && (await flows.progress(flow.id))) || null })
  }
  return { items, nextCursor: found.next ?? null }
}

async function showFlow({ pawl, params }: RouteCall): Promise<unknown> {
  const flow = await findFlow(pawl.store, params.id ?? '')
  return { flow, progress: await progressOf(pawl, flow) }
}

async function progressOf({ store }: RouteCall['pawl'], { id }: FlowInfo): Promise<unknown> {
  const progress = await store.flows.progress(id)
  if (progress === undefined) throw new FlowNotFound(id)
  return progress
}

async function listNodes(call: RouteCall): Promise<unknown> {
  const { id = '' } = call.params
  const { at } = call.query
  await findFlow(call.pawl.store, id)
  const options = { ...pageOf(call), ...(at !== undefined && { at }) }
  const found = await call.pawl.store.flows.nodes(id, options)
  return { items: found.items, nextCursor: found.next ?? null }
}

async function showGraph({ pawl, params, query }: RouteCall): Promise<unknown> {
  const { id = '' } = params
  const { at } = query
  const view = at === undefined ? await watchFlow(pawl, id) : await readFlow(pawl, id, { at })
  const { flow, progress, points, graph, moments } = view
  const byNumber = new Map(points.map((point) => [point.n, point]))
  const critical = graph.critical.flatMap((number) => {
    const point = byNumber.get(number)
    if (point === undefined) return []
    const { n, id: job, type, status, releasedAt, startedAt, endedAt } = point
    return [{ n, job, type, status, releasedAt, startedAt, endedAt }]
  })
  const { boxes, edges } = graph
  return { flow, progress, boxes, edges, critical, moments }
}

const changing = (verb: 'cancel' | 'redrive') => async (call: RouteCall) => {
  const { id = '' } = call.params
  const { dryRun = false } = call.body
  const options = { dryRun, signal: call.signal }
  const operator = operatorOf(call)
  try {
    return await (verb === 'cancel'
      ? operator.cancelFlow(id, options)
      : operator.redriveFlow(id, options))
  } finally {
    forgetFlow(call.pawl, id)
  }
}

async function findBatch({ pawl, params }: RouteCall): Promise<FlowInfo> {
  const { id = '' } = params
  const flow = await findFlow(pawl.store, id)
  if (flow.kind === 'batch') return flow
  const hint = `Read it as a flow: GET /api/v1/flows/${id}.`
  throw new RequestRefused(404, `${id} is a flow, not a batch`, hint)
}

async function showBatch(call: RouteCall): Promise<unknown> {
  const flow = await findBatch(call)
  return { flow, progress: await progressOf(call.pawl, flow) }
}

/** A member in a request. */
interface MemberRequest {
  readonly type: string
  readonly input?: unknown
  readonly queue?: string
  readonly lifecycle?: string
  readonly priority?: number | { readonly aheadMs: number }
  readonly tags?: readonly string[]
}

async function addMembers(call: RouteCall): Promise<unknown> {
  const { id } = await findBatch(call)
  const { internals, store } = call.pawl
  const items: EnqueueItem[] = []
  for (const member of call.body.members as readonly MemberRequest[]) {
    const entry = {
      // Tags such as {"@pawl:date":…} become their values, so that the schema checks a Date.
      input: decodeValue(JSON.stringify(member.input ?? null)),
      ...(member.priority !== undefined && { priority: priorityIn(member.priority) }),
      ...(member.tags !== undefined && { tags: member.tags }),
    }
    items.push(await itemBy(internals, jobTypeOf(call, member), entry))
  }
  const { at } = call.body
  const options = { requester: requesterOf(call), ...(at !== undefined && { at }) }
  const answer = accepted(await store.flows.add(id, items, options))
  const jobs = answer.kind === 'created' ? answer.jobs : []
  return { flow: answer.flow, jobs: jobs.map(({ id: own, state }: Job) => ({ id: own, state })) }
}

function accepted(answer: FlowAnswer): Exclude<FlowAnswer, { kind: 'rejected' }> {
  if (answer.kind === 'rejected') throw answer.error
  return answer
}

async function closeBatch(call: RouteCall): Promise<unknown> {
  const { id } = await findBatch(call)
  const flow = await call.pawl.store.flows.close(id, requesterOf(call))
  if (flow === undefined) throw new FlowNotFound(id)
  return { flow }
}

async function showLinks({ pawl, params, payloads }: RouteCall): Promise<unknown> {
  const { id = '' } = params
  const job = await pawl.store.get(id)
  if (job === undefined) throw new JobNotFound(id)
  const { after, ...links } = await linksOf(pawl.store, job)
  const shown = (group: AfterEnds) => ({
    ...group,
    ends: group.ends.slice(0, ENDS_MAX).map(({ result, ...end }) => ({
      ...end,
      ...(result !== undefined && { result: payloads.view(result) }),
    })),
  })
  return { ...links, after: after.map(shown) }
}

/** How many dependencies of a group are shown. */
const ENDS_MAX = 100
const MEMBERS_MAX = 1000
const TAGS_MAX = 100
const ROOT = '/api/v1/flows'
const BATCHES = '/api/v1/batches'
const SHOWN = record({ flow: ref('Flow'), progress: ref('FlowProgress') })
const AT = { at: time('as it was at this time') }

const MEMBER = record(
  { type: name('the job type') },
  {
    input: anything('its input as JSON; null if absent'),
    queue: name('the queue, if the server does not know the job type'),
    lifecycle: LIFECYCLE,
    priority: priority('the order of claims; that of the job type if absent'),
    tags: list(name(), { maxItems: TAGS_MAX }),
  },
)

const READS: readonly Route[] = [
  {
    method: 'GET',
    path: ROOT,
    operation: 'listFlows',
    summary: 'Lists flows and batches, newest first.',
    roles: READ,
    query: {
      state: oneOf(FLOW_STATES, 'attention: a job is parked'),
      kind: oneOf(FLOW_KINDS),
      key: name('the flow with this key'),
      progress: flag('also how far each is'),
      ...PAGING,
    },
    answer: page(record({ flow: ref('Flow'), progress: nullable(ref('FlowProgress')) })),
    run: listFlows,
  },
  {
    method: 'GET',
    path: `${ROOT}/{id}`,
    operation: 'showFlow',
    summary: 'Shows a flow or batch, and how far it is.',
    roles: READ,
    errors: [404],
    answer: SHOWN,
    run: showFlow,
  },
  {
    method: 'GET',
    path: `${ROOT}/{id}/nodes`,
    operation: 'listFlowNodes',
    summary: 'Lists the jobs of a flow by number, with what each waits for.',
    details: 'With `at`, as they were at that time; jobs that were created later are left out.',
    roles: READ,
    query: { ...AT, ...PAGING },
    errors: [404],
    answer: page(ref('FlowNode')),
    run: listNodes,
  },
  {
    method: 'GET',
    path: `${ROOT}/{id}/graph`,
    operation: 'showFlowGraph',
    summary: 'Shows a flow as a graph with times and its critical path.',
    details: 'Nodes of a large flow that are alike are folded into one box with counts.',
    roles: READ,
    query: AT,
    errors: [404],
    answer: ref('FlowGraph'),
    run: showGraph,
  },
  {
    method: 'GET',
    path: `${BATCHES}/{id}`,
    operation: 'showBatch',
    summary: 'Shows how far a batch is.',
    roles: READ,
    errors: [404],
    answer: SHOWN,
    run: showBatch,
  },
  {
    method: 'GET',
    path: '/api/v1/jobs/{id}/links',
    operation: 'showJobLinks',
    summary: 'Shows what connects a job with others.',
    details: 'Its flow or parent, its dependencies, what waits for it, and its children.',
    roles: READ,
    errors: [404],
    answer: ref('JobLinks'),
    run: showLinks,
  },
]

export const routes: readonly Route[] = [
  ...READS,
  ...(['cancel', 'redrive'] as const).map(
    (verb): Route => ({
      method: 'POST',
      path: `${ROOT}/{id}/${verb}`,
      operation: `${verb}Flow`,
      summary: {
        cancel: 'Cancels all jobs of a flow that have not ended, and closes an open batch.',
        redrive: 'Redrives the failed and parked jobs of a flow; what waits for them then goes on.',
      }[verb],
      roles: OPERATE,
      body: record(WHY, { ...WHO, ...DRY_RUN }),
      errors: [404],
      answer: ref('OperatorReport'),
      run: changing(verb),
    }),
  ),
  {
    method: 'POST',
    path: `${BATCHES}/{id}/add`,
    operation: 'addToBatch',
    summary: 'Adds members to an open batch, all of them or none.',
    details:
      'Send `at`, the size of the batch before the request, to be able to repeat the request: ' +
      'members that an earlier request has added are not added again.',
    roles: ENQUEUE,
    body: record(
      { members: list(MEMBER, { minItems: 1, maxItems: MEMBERS_MAX }) },
      { at: count('the size of the batch before', 0, Number.MAX_SAFE_INTEGER) },
    ),
    errors: [404, 409],
    answer: record({ flow: ref('Flow'), jobs: list(record({ id: text(), state: text() })) }),
    run: addMembers,
  },
  {
    method: 'POST',
    path: `${BATCHES}/{id}/close`,
    operation: 'closeBatch',
    summary: 'Closes a batch: its callbacks run when all members have ended.',
    roles: ENQUEUE,
    body: record({}),
    errors: [404],
    answer: record({ flow: ref('Flow') }),
    run: closeBatch,
  },
]
