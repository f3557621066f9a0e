/** The schemas of flows, batches, and links between jobs. */
import { NODE_STATUSES } from '../audit/flow-points.ts'
import {
  flag,
  type JsonSchema,
  list,
  nullable,
  oneOf,
  record,
  ref,
  text,
  time,
  whole,
} from './schema.ts'

export const FLOW_STATES = ['open', 'attention', 'done'] as const
export const FLOW_KINDS = ['flow', 'batch'] as const
const NEED = oneOf(['success', 'end', 'failure'])

const PROGRESS = record({
  members: whole('callbacks of a batch are not counted'),
  succeeded: whole(),
  failed: whole(),
  cancelled: whole(),
  parked: whole(),
  live: whole('neither ended nor parked'),
})

const FLOW = record({
  id: text(),
  kind: oneOf(FLOW_KINDS),
  key: nullable(text()),
  createdAt: time(),
  size: whole('how many nodes it has, callbacks included'),
  callbacks: whole('how many of them are callbacks of a batch: the first ones'),
  open: flag('members may be added'),
  state: oneOf(FLOW_STATES, 'attention: a job is parked'),
})

const RANGE = { anyOf: [whole(), list(whole(), { minItems: 2, maxItems: 2 })] }

const AFTER_GROUP = record({
  name: text(),
  of: { anyOf: [list(RANGE), oneOf(['members'])], description: 'node numbers, or first and last' },
  need: NEED,
  list: flag('the handler sees a list'),
})

const NODE = record(
  {
    n: whole('from 0'),
    job: ref('Job'),
    after: list(AFTER_GROUP, { description: 'what it waits or has waited for' }),
    onFailure: oneOf(['park', 'cancel', 'fail']),
  },
  {
    as: text('children: name and number of the invoke'),
    releasedAt: time('when its dependencies had arrived'),
  },
)

const ERROR = record(
  { message: text(), kind: text(), type: text() },
  { name: text(), code: text(), fingerprint: text() },
)

const ENDS = record({
  name: text(),
  need: NEED,
  list: flag(),
  ends: list(
    record(
      {
        id: text(),
        type: text(),
        outcome: nullable(text('succeeded, failed or cancelled; null if it has not ended')),
        seq: nullable(whole('the number of the fact that counts')),
        error: nullable(ERROR),
        reason: nullable(text()),
      },
      { result: ref('Payload') },
    ),
  ),
})

const LINKS = record({
  flow: nullable(ref('Flow')),
  parent: nullable(ref('Job')),
  after: list(ENDS, { description: 'its dependencies, with how each ended' }),
  waitsFor: list(ref('Job'), { description: 'the jobs that it waits for now; the first ones' }),
  awaitedBy: list(ref('Job'), { description: 'the jobs that wait for it now; the first ones' }),
  children: list(ref('FlowNode'), { description: 'the jobs that it has invoked; the first ones' }),
})

const TIME = nullable(time())

const BOX = record({
  id: text(),
  type: text('the type of its nodes, or one of them'),
  types: whole('how many types its nodes have'),
  count: whole('how many nodes are folded into it'),
  first: whole('the smallest number of its nodes'),
  last: whole('the greatest number of its nodes'),
  job: nullable(text('the job, if it is one node')),
  statuses: record({}, Object.fromEntries(NODE_STATUSES.map((status) => [status, whole()]))),
  releasedAt: TIME,
  startedAt: TIME,
  endedAt: TIME,
  critical: flag('a node of it is on the critical path'),
})

const EDGE = record({
  from: text(),
  to: text(),
  names: list(text()),
  needs: list(NEED),
  count: whole('how many dependencies are folded into it'),
  open: whole('how many of the awaited nodes have not ended'),
  failed: whole('how many came out otherwise than needed'),
  at: nullable(time('when the last one arrived')),
  critical: flag(),
})

const GRAPH = record({
  flow: ref('Flow'),
  progress: ref('FlowProgress'),
  boxes: list(BOX),
  edges: list(EDGE),
  critical: list(
    record({
      n: whole(),
      job: text(),
      type: text(),
      status: oneOf(NODE_STATUSES),
      releasedAt: TIME,
      startedAt: TIME,
      endedAt: TIME,
    }),
    { description: 'the nodes that decide when the flow is done, in their order' },
  ),
  moments: list(time(), { description: 'when something happened; a selection if there are many' }),
})

export const LINK_COMPONENTS: Readonly<Record<string, JsonSchema>> = {
  Flow: FLOW,
  FlowProgress: PROGRESS,
  FlowNode: NODE,
  FlowGraph: GRAPH,
  JobLinks: LINKS,
}
