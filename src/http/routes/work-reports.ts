/**
 * What workers report about a job that they hold. Every report names its lease. The store decides
 * under the fence of the lease, so the answers are those that a worker of the library gets.
 *
 * The fact of a report keeps the span that `traceparent` names. A report without one belongs to the
 * trace of its job.
 */
import { JobNotFound } from '../../core/errors.ts'
import { FAILURE_KINDS, type Failure, type FailureKind, failureOf } from '../../core/failure.ts'
import { USAGE_MAX } from '../../core/job/checks.ts'
import type { Job } from '../../core/job/job.ts'
import { DELAY_MAX_MS } from '../../core/retry.ts'
import { decodeValue, encodeValue } from '../../core/values.ts'
import type { Closing } from '../../stores/contract/commit.ts'
import type { Answer, Held, Settlement } from '../../stores/contract/store.ts'
import type { WaitEnd } from '../../stores/contract/waits.ts'
import { RequestRefused } from '../errors.ts'
import { type Lease, readLease } from '../lease-text.ts'
import { type Route, type RouteCall, WORK } from '../route.ts'
import {
  anything,
  count,
  type JsonSchema,
  list,
  name,
  oneOf,
  record,
  text,
  time,
} from '../schema.ts'
import { TRACE_HEADERS, traceIn } from '../tracing.ts'

const EFFECTS_MAX = 1000
const STACK_MAX = 20_000

type Bounds = RouteCall['pawl']['internals']['bounds']

/** A value of a request as a payload. Tags such as {"@pawl:date":…} are kept. */
export function storable(value: unknown, bounds: Bounds): string {
  return encodeValue(decodeValue(JSON.stringify(value)), bounds)
}

/** The job of a lease as it is now. The store decides whether the lease still holds it. */
async function heldBy(call: RouteCall): Promise<{ held: Held; lease: Lease }> {
  const lease = readLease(call.body.lease)
  const job = await call.pawl.store.get(lease.jobId)
  if (job === undefined) throw new JobNotFound(lease.jobId)
  return { held: { ref: lease.ref, job, input: 'null' }, lease }
}

const settling =
  (settlementOf: (call: RouteCall, lease: Lease, job: Job) => Omit<Settlement, 'held'>) =>
  async (call: RouteCall): Promise<unknown> => {
    const { held, lease } = await heldBy(call)
    const settlement = { held, ...closingOf(call), ...settlementOf(call, lease, held.job) }
    const { answers } = await call.pawl.store.settle([settlement])
    return outcomeOf(answers[0] as Answer)
  }

/** What every report may bring: the last progress of the attempt, and its span. */
function closingOf({ body, header, pawl }: RouteCall): Omit<Closing, 'usage'> {
  const { progress } = body
  const trace = traceIn(header)
  return {
    ...(progress !== undefined && { progress: storable(progress, pawl.internals.bounds) }),
    ...(trace && { trace }),
  }
}

function outcomeOf(answer: Exclude<Answer, { kind: 'done' }> | { kind: 'done'; job: Job }) {
  if (answer.kind === 'rejected') throw answer.error
  const { id, state, outcome, runAt } = answer.job
  return { kind: answer.kind, id, state, outcome, runAt }
}

const start = settling((_call, { fence }) => ({ command: { kind: 'start', fence } }))

const step = settling(({ body, pawl }, { fence }) => ({
  command: { kind: 'step', fence, name: body.name, n: body.n ?? 1 },
  payload: storable(body.result ?? null, pawl.internals.bounds),
}))

const release = settling((_call, { fence }) => ({ command: { kind: 'release', fence } }))

const snooze = settling(({ body, pawl }, { fence }) => {
  const { delayMs, runAt } = body
  if ((delayMs === undefined) === (runAt === undefined)) {
    throw new RequestRefused(400, 'The body needs either delayMs or runAt')
  }
  const at = runAt ?? pawl.store.now() + delayMs
  return { command: { kind: 'suspend', fence, runAt: at, reason: 'snoozed' } }
})

const acknowledge = settling((_call, { fence }) => ({ command: { kind: 'cancel', fence } }))

const fail = settling(({ body, pawl }, { fence }, job) => ({
  command: {
    kind: 'fail',
    fence,
    failure: failureIn(body, job, pawl.internals.redact),
    ...(body.usage && { usage: body.usage }),
  },
}))

interface WaitBody {
  readonly for: 'sleep' | 'signal'
  readonly name: string
  readonly n?: number
  readonly timeoutMs?: number
  readonly until?: number
}

/**
 * Waits under a lease. The end of a wait is fixed by the first request for it, so a later attempt
 * may send the same request. What is over is answered at once, also in later attempts.
 */
async function wait(call: RouteCall): Promise<unknown> {
  const { pawl, header } = call
  const body: WaitBody = call.body
  const { for: what, name: own, n = 1, timeoutMs } = body
  if (body.until !== undefined && timeoutMs !== undefined) {
    throw new RequestRefused(400, 'The body may have timeoutMs or until, not both')
  }
  const until = body.until ?? (timeoutMs === undefined ? null : pawl.store.now() + timeoutMs)
  if (what === 'sleep' && until === null) {
    throw new RequestRefused(400, 'A sleep needs timeoutMs or until')
  }
  const { jobId, fence } = readLease(call.body.lease)
  const trace = traceIn(header)
  const asked = { for: what, name: own, n, until }
  const answer = await pawl.store.waits.wait({
    id: jobId,
    fence,
    wait: asked,
    ...(trace && { trace }),
  })
  if (answer.kind === 'rejected') throw answer.error
  const { id, state, runAt } = answer.job
  if (answer.kind === 'suspended') return { kind: 'suspended', id, state, runAt }
  return { kind: 'over', id, state, runAt, end: endView(answer.end) }
}

/** How a wait ended, for workers. */
export function endView(end: WaitEnd): unknown {
  if (end.kind !== 'received') return end
  return { ...end, payload: JSON.parse(end.payload) }
}

interface FailureRequest {
  readonly message: string
  readonly kind?: FailureKind
  readonly retryAfterMs?: number
  readonly name?: string
  readonly code?: string
  readonly stack?: string
}

/** The same details as of an error that a handler of the library throws. */
function failureIn(
  given: FailureRequest,
  { type }: Job,
  redact: RouteCall['pawl']['internals']['redact'],
): Failure {
  const { message, kind = 'error', name: own = 'Error', code, stack = '', retryAfterMs } = given
  const thrown = Object.assign(new Error(message), { name: own, stack, ...(code && { code }) })
  const described = failureOf(thrown, { type, ...(redact && { redact }) })
  return {
    ...described,
    kind,
    class: FAILURE_KINDS[kind],
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  }
}

/** Without effects, a commit is settled like any report, which is quicker. */
async function commit(call: RouteCall): Promise<unknown> {
  const { body, pawl } = call
  const { held, lease } = await heldBy(call)
  const { bounds } = pawl.internals
  const { usage } = body
  const closing = { ...closingOf(call), ...(usage && { usage }) }
  const result = body.result === undefined ? undefined : storable(body.result, bounds)
  const effects = (body.effects ?? []) as readonly { name: string; payload?: unknown }[]
  if (effects.length === 0) {
    const { usage: own, ...rest } = closing
    const command = { kind: 'commit', fence: lease.fence, ...(own && { usage: own }) } as const
    const payload = result === undefined ? {} : { payload: result }
    const { answers } = await pawl.store.settle([{ held, command, ...payload, ...rest }])
    return outcomeOf(answers[0] as Answer)
  }
  const execution = { ...held.job.execution, claim: lease.fence.claim } as Job['execution']
  const job = { ...held.job, attempt: lease.fence.attempt, execution }
  const declare = (tx: Parameters<Parameters<typeof pawl.store.commit>[1]>[0]) => {
    for (const { name: own, payload = null } of effects) tx.effect(own, storable(payload, bounds))
    return result
  }
  return outcomeOf(await pawl.store.commit({ ...held, job }, declare, () => closing))
}

export const LEASE = { lease: text('from the claim', { minLength: 1, maxLength: 1000 }) }
export const NULLABLE_TEXT = { type: ['string', 'null'] }
export const NULLABLE_WHOLE = { type: ['integer', 'null'] }

const PROGRESS = { progress: anything('how far the attempt came; kept until the next claim') }
const USAGE = {
  usage: {
    type: 'object',
    description: 'counters of the attempt, such as tokens; kept in its fact',
    maxProperties: USAGE_MAX,
    additionalProperties: { type: 'number' },
  },
}

const SETTLED = record({
  kind: oneOf(['done', 'same', 'asked'], 'same: the report was written before'),
  id: text(),
  state: text(),
  outcome: NULLABLE_TEXT,
  runAt: NULLABLE_WHOLE,
})

interface Report {
  readonly verb: string
  readonly operation: string
  readonly summary: string
  readonly body: JsonSchema
  readonly run: Route['run']
}

const REPORTS: readonly Report[] = [
  {
    verb: 'start',
    operation: 'startAttempt',
    summary: 'Starts the work on a job that was claimed with `start: false`.',
    body: record(LEASE),
    run: start,
  },
  {
    verb: 'step',
    operation: 'reportStep',
    summary: 'Records the result of a step. Later attempts get it with their claim.',
    body: record(
      { ...LEASE, name: name('the name of the step') },
      {
        n: count('the number of the step under this name; 1 if absent', 1, Number.MAX_SAFE_INTEGER),
        result: anything('null if absent'),
      },
    ),
    run: step,
  },
  {
    verb: 'commit',
    operation: 'commitJob',
    summary: 'Commits a job with its result and its effects, in one transaction.',
    body: record(LEASE, {
      result: anything('the result; none is stored if absent'),
      effects: list(record({ name: name() }, { payload: anything() }), { maxItems: EFFECTS_MAX }),
      ...USAGE,
      ...PROGRESS,
    }),
    run: commit,
  },
  {
    verb: 'fail',
    operation: 'failJob',
    summary: 'Reports that an attempt failed. The policy of the job decides on a retry.',
    body: record(
      { ...LEASE, message: text('what failed', { maxLength: STACK_MAX }) },
      {
        kind: oneOf(Object.keys(FAILURE_KINDS), 'error if absent; says whether a retry can help'),
        retryAfterMs: count('the delay before the next attempt', 0, DELAY_MAX_MS),
        name: name('the name of the error'),
        code: name('the code of the error'),
        stack: text('where it happened', { maxLength: STACK_MAX }),
        ...USAGE,
        ...PROGRESS,
      },
    ),
    run: fail,
  },
  {
    verb: 'release',
    operation: 'releaseJob',
    summary: 'Releases a job without an attempt, so that another worker can claim it.',
    body: record(LEASE, PROGRESS),
    run: release,
  },
  {
    verb: 'snooze',
    operation: 'snoozeJob',
    summary: 'Ends an attempt without a failure; the job runs again later.',
    body: record(LEASE, {
      delayMs: count('the delay; or give runAt', 0, DELAY_MAX_MS),
      runAt: time('the time; or give delayMs'),
      ...PROGRESS,
    }),
    run: snooze,
  },
  {
    verb: 'cancel',
    operation: 'confirmCancel',
    summary: 'Ends a job as cancelled whose cancellation was asked for.',
    body: record(LEASE, PROGRESS),
    run: acknowledge,
  },
]

/** How a wait ended. */
export const WAIT_END = record(
  { kind: oneOf(['received', 'passed'], 'passed: the sleep is over, or the time-out has passed') },
  {
    payload: anything('the payload of the signal'),
    by: text('who sent the signal'),
    note: text('the reason of an operator'),
  },
)

const WAIT_ROUTE: Route = {
  method: 'POST',
  path: '/api/v1/leases/wait',
  roles: WORK,
  headers: TRACE_HEADERS,
  errors: [404, 409],
  operation: 'waitFor',
  summary: 'Sleeps, or waits for a signal. If the wait is not over, the attempt ends.',
  details:
    'With `suspended` the lease is gone: stop, and report nothing more. When the wait is over, ' +
    'the job is claimed again; the same request is then answered with `over`.',
  body: record(
    { ...LEASE, for: oneOf(['sleep', 'signal']), name: name('of the sleep or of the signal') },
    {
      n: count('it is the n-th wait of its name; 1 if absent', 1, Number.MAX_SAFE_INTEGER),
      timeoutMs: count('how long to wait; or give until', 0, DELAY_MAX_MS),
      until: time('when the wait ends; or give timeoutMs'),
    },
  ),
  answer: record(
    { kind: oneOf(['over', 'suspended']), id: text(), state: text(), runAt: NULLABLE_WHOLE },
    { end: WAIT_END },
  ),
  run: wait,
}

const settled: readonly Route[] = REPORTS.map(
  ({ verb, ...own }): Route => ({
    method: 'POST',
    path: `/api/v1/leases/${verb}`,
    roles: WORK,
    headers: TRACE_HEADERS,
    errors: [404, 409],
    answer: SETTLED,
    ...own,
  }),
)

export const reports: readonly Route[] = [...settled, WAIT_ROUTE]
