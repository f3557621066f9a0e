/** Queues: lists, pauses and limits, and who changed them. */

import { DELAY_MAX_MS } from '../../core/retry.ts'
import { NameUnknown } from '../../engine/errors.ts'
import { RequestRefused } from '../errors.ts'
import { operatorOf, WHO, WHY } from '../operating.ts'
import {
  OPERATE,
  PAGING,
  pageOf,
  READ,
  type Route,
  type RouteCall,
  SHARED_COUNTS,
} from '../route.ts'
import { count, flag, list, name, nullable, page, record, ref } from '../schema.ts'

const DEPTH_MAX = 1_000_000
const SHOWN = 10

async function listQueues({ census }: RouteCall): Promise<unknown> {
  return { items: (await census()).queues }
}

async function showQueue({ pawl, census, params }: RouteCall): Promise<unknown> {
  const { queue: wanted = '' } = params
  const { queues: all } = await census()
  const queue = all.find((one) => one.name === wanted)
  if (queue === undefined) {
    const known = all.slice(0, SHOWN).map((one) => one.name)
    throw new NameUnknown('queue', wanted, known)
  }
  const { items } = await pawl.store.listQueueRecords({ queue: wanted }, { limit: SHOWN })
  return { queue, records: items }
}

async function queueHistory(call: RouteCall): Promise<unknown> {
  const { queue } = call.query
  const filter = queue === undefined ? {} : { queue }
  const { items, next } = await call.pawl.store.listQueueRecords(filter, pageOf(call))
  return { items, nextCursor: next ?? null }
}

const changing = (verb: 'pause' | 'resume' | 'limit') => async (call: RouteCall) => {
  const { queue = '' } = call.params
  const operator = operatorOf(call)
  if (verb === 'pause') return answerOf(await operator.pauseQueue(queue))
  if (verb === 'resume') return answerOf(await operator.resumeQueue(queue))
  const { maxDepth, maxWaitMs } = call.body
  if (maxDepth === undefined && maxWaitMs === undefined) {
    throw new RequestRefused(400, 'Give "maxDepth", "maxWaitMs" or both')
  }
  return answerOf(
    await operator.limitQueue(queue, {
      ...(maxDepth !== undefined && { maxDepth }),
      ...(maxWaitMs !== undefined && { maxWait: maxWaitMs }),
    }),
  )
}

function answerOf(change: unknown) {
  return { changed: change !== undefined, record: change ?? null }
}

const ROOT = '/api/v1/queues'
const CHANGED = record({
  changed: flag('false if the queue has these settings already'),
  record: nullable(ref('QueueRecord')),
})

const LIMITS = {
  maxDepth: nullable(count('how many jobs may be ready; null removes the limit', 0, DEPTH_MAX)),
  maxWaitMs: nullable(
    count('how long a job may be ready; null removes the limit', 0, DELAY_MAX_MS),
  ),
}

export const routes: readonly Route[] = [
  {
    method: 'GET',
    path: ROOT,
    operation: 'listQueues',
    summary: 'Lists queues: jobs by lane, oldest ready job, workers, pauses and limits.',
    details: SHARED_COUNTS,
    roles: READ,
    answer: record({ items: list(ref('Queue')) }),
    run: listQueues,
  },
  {
    method: 'GET',
    path: '/api/v1/queue-records',
    operation: 'listQueueRecords',
    summary: 'Lists changes of queues, newest first: who, when and why.',
    roles: READ,
    query: { queue: name('changes of this queue'), ...PAGING },
    answer: page(ref('QueueRecord')),
    run: queueHistory,
  },
  {
    method: 'GET',
    path: `${ROOT}/{queue}`,
    operation: 'showQueue',
    summary: 'Shows a queue with its last changes.',
    details: SHARED_COUNTS,
    roles: READ,
    errors: [404],
    answer: record({ queue: ref('Queue'), records: list(ref('QueueRecord')) }),
    run: showQueue,
  },
  ...(['pause', 'resume', 'limit'] as const).map(
    (verb): Route => ({
      method: 'POST',
      path: `${ROOT}/{queue}/${verb}`,
      operation: `${verb}Queue`,
      summary: {
        pause: 'Pauses a queue: no jobs are claimed; running jobs continue.',
        resume: 'Resumes a paused queue.',
        limit: 'Limits how many jobs may be ready in a queue, and for how long.',
      }[verb],
      roles: OPERATE,
      body: record(WHY, { ...WHO, ...(verb === 'limit' && LIMITS) }),
      answer: CHANGED,
      run: changing(verb),
    }),
  ),
]
