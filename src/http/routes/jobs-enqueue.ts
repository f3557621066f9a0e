/**
 * Enqueues jobs by the name of their type.
 *
 * `Idempotency-Key` becomes the key of the job: a second request with the same type and key returns
 * the first job, for as long as the store has it. If the inputs differ, the request is refused.
 */
import { LIFECYCLES } from '../../core/lifecycles/index.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import { DELAY_MAX_MS } from '../../core/retry.ts'
import { decodeValue } from '../../core/values.ts'
import { defineJob } from '../../engine/define-job.ts'
import { type EnqueueEntry, enqueueItems, itemBy } from '../../engine/enqueueing.ts'
import { NameUnknown } from '../../engine/errors.ts'
import type { AnyJob } from '../../engine/job-types.ts'
import type { EnqueueItem } from '../../stores/contract/store.ts'
import { RequestRefused } from '../errors.ts'
import { Reply } from '../exchange.ts'
import { requesterOf } from '../operating.ts'
import { ENQUEUE, type Route, type RouteCall } from '../route.ts'
import {
  anything,
  count,
  flag,
  type JsonSchema,
  list,
  name,
  oneOf,
  priority,
  priorityIn,
  record,
  text,
  time,
} from '../schema.ts'
import { TRACE_HEADERS } from '../tracing.ts'

const JOBS_MAX = 1000
const TAGS_MAX = 100
const NAMES_SHOWN = 20

/** A job in a request. */
interface JobRequest {
  readonly type: string
  readonly input?: unknown
  readonly queue?: string
  readonly lifecycle?: string
  readonly delayMs?: number
  readonly runAt?: number
  readonly deadlineAt?: number
  readonly timeoutMs?: number
  readonly key?: string
  readonly onConflict?: 'existing' | 'replace' | 'reject'
  readonly priority?: number | { readonly aheadMs: number }
  readonly tags?: readonly string[]
  readonly hold?: boolean
  readonly id?: string
}

const duration = (description: string) => count(description, 0, DELAY_MAX_MS)

export const LIFECYCLE: JsonSchema = oneOf(
  LIFECYCLES.map((one) => one.name),
  'the lifecycle, if the server does not know the job type; standard if absent',
)

const JOB_REQUEST: JsonSchema = record(
  { type: name('the job type') },
  {
    input: anything('its input as JSON; null if absent'),
    queue: name('the queue, if the server does not know the job type'),
    lifecycle: LIFECYCLE,
    delayMs: duration('not before so much time has passed'),
    runAt: time('not before this time'),
    deadlineAt: time('from this time on nothing starts or commits'),
    timeoutMs: count('how long an attempt may take', 1, DELAY_MAX_MS),
    key: name('at most one job per type and key'),
    onConflict: oneOf(['existing', 'replace', 'reject'], 'what to do if a job has the key'),
    priority: priority('the order of claims; that of the job type if absent'),
    tags: list(name(), { maxItems: TAGS_MAX }),
    hold: flag('create the job without running it'),
    id: text('an id of your own: a UUID', { maxLength: 36 }),
  },
)

/** The job type that a request names. Throws `NameUnknown` if only known types are accepted. */
export function jobTypeOf(
  { pawl, anyType }: RouteCall,
  job: Pick<JobRequest, 'type' | 'queue' | 'lifecycle'>,
): AnyJob {
  const { jobs } = pawl.internals
  const { type, queue, lifecycle = 'standard' } = job
  const known = jobs.get(type)
  if (known !== undefined) {
    if (queue === undefined && job.lifecycle === undefined) return known
    throw new RequestRefused(400, '"queue" and "lifecycle" come from the job type; leave them out')
  }
  if (!anyType) throw new NameUnknown('job type', type, [...jobs.keys()].slice(0, NAMES_SHOWN))
  const found = LIFECYCLES.find((one) => one.name === lifecycle) as Lifecycle
  return defineJob({ name: type, lifecycle: found, ...(queue !== undefined && { queue }) })
}

/** The options of a job as the library takes them. */
function entryOf(job: JobRequest, idempotencyKey: string | undefined): EnqueueEntry {
  const { input = null, delayMs, runAt, deadlineAt, timeoutMs, id } = job
  const { key = idempotencyKey, onConflict, tags, hold } = job
  if (idempotencyKey !== undefined && key !== idempotencyKey) {
    throw new RequestRefused(400, '"key" must be absent, or the same as Idempotency-Key')
  }
  return {
    // Tags such as {"@pawl:date":…} become their values, so that the schema checks a Date.
    input: decodeValue(JSON.stringify(input)),
    ...(key !== undefined && { key }),
    ...(onConflict !== undefined && { onConflict }),
    ...(job.priority !== undefined && { priority: priorityIn(job.priority) }),
    ...(tags !== undefined && { tags }),
    ...(hold !== undefined && { hold }),
    ...(delayMs !== undefined && { delay: delayMs }),
    ...(runAt !== undefined && { runAt: new Date(runAt) }),
    ...(deadlineAt !== undefined && { deadline: new Date(deadlineAt) }),
    ...(timeoutMs !== undefined && { timeout: timeoutMs }),
    ...(id !== undefined && { jobId: id }),
  }
}

interface EnqueuedJob {
  readonly id: string
  readonly created: boolean
  readonly state: string
}

async function enqueueJobs(
  call: RouteCall,
  jobs: readonly JobRequest[],
  keyOf: (i: number) => string | undefined,
): Promise<EnqueuedJob[]> {
  const { internals, store } = call.pawl
  const items: EnqueueItem[] = []
  for (const [i, job] of jobs.entries()) {
    items.push(await itemBy(internals, jobTypeOf(call, job), entryOf(job, keyOf(i))))
  }
  const requester = requesterOf(call)
  const results = await enqueueItems(store, items, { requester })
  for (const [i, result] of results.entries()) {
    if (result.kind !== 'existing' || keyOf(i) === undefined) continue
    const first = await store.payloads(result.job.id)
    if (first === undefined || first.input === items[i]?.input) continue
    const why = 'The Idempotency-Key was used before, with another input'
    throw new RequestRefused(422, why, 'Send the same request as before, or use another key.')
  }
  return results.map((result) => {
    // Retention has removed the job, and its key is still taken.
    if (result.kind === 'removed') {
      const { id, outcome } = result.removed
      return { id, created: false, state: outcome }
    }
    const { id, state } = result.job
    return { id, created: result.kind === 'created', state }
  })
}

async function enqueueOne(call: RouteCall): Promise<Reply> {
  const header = call.header('idempotency-key')
  const [job] = await enqueueJobs(call, [call.body], () => header)
  const { id, created } = job as EnqueuedJob
  const headers = {
    'content-type': 'application/json',
    location: `${call.basePath}${ROOT}/${id}`,
  }
  return new Reply(JSON.stringify(job), headers, created ? 201 : 200)
}

async function enqueueMany(call: RouteCall): Promise<unknown> {
  const header = call.header('idempotency-key')
  const keyOf = (i: number) => (header === undefined ? undefined : `${header}/${i}`)
  return { jobs: await enqueueJobs(call, call.body.jobs, keyOf) }
}

const ROOT = '/api/v1/jobs'
const ENQUEUED = record({
  id: text(),
  created: flag('false if a job with the same key existed already'),
  state: text(),
})
const HEADERS = {
  'Idempotency-Key': 'the key of the job: repeating the request returns the same',
  ...TRACE_HEADERS,
}

export const routes: readonly Route[] = [
  {
    method: 'POST',
    path: ROOT,
    operation: 'enqueueJob',
    summary: 'Enqueues a job. It is durable when the answer arrives.',
    details: 'Answers 201, or 200 if a job with the same key existed already.',
    roles: ENQUEUE,
    headers: HEADERS,
    body: JOB_REQUEST,
    status: 201,
    errors: [404, 409, 429],
    answer: ENQUEUED,
    run: enqueueOne,
  },
  {
    method: 'POST',
    path: `${ROOT}/batch`,
    operation: 'enqueueJobs',
    summary: 'Enqueues jobs in one transaction: all of them, or none.',
    roles: ENQUEUE,
    headers: HEADERS,
    body: record({ jobs: list(JOB_REQUEST, { minItems: 1, maxItems: JOBS_MAX }) }),
    errors: [404, 409, 429],
    answer: record({ jobs: list(ENQUEUED) }),
    run: enqueueMany,
  },
]
