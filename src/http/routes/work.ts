/**
 * The protocol of workers in any language; docs/reference/worker-protocol.md describes it. A worker
 * claims jobs and gets a lease for each. Every report names the lease. A report under a lease that
 * was lost is refused with `E_STALE_FENCE` and changes nothing.
 */
import { StaleFence } from '../../core/errors.ts'
import { FAILURE_KINDS, type Failure, type FailureKind, failureOf } from '../../core/failure.ts'
import { LEASE_MAX_MS } from '../../core/job/fence.ts'
import type { Job } from '../../core/job/job.ts'
import { DELAY_MAX_MS } from '../../core/retry.ts'
import { decodeValue, encodeValue } from '../../core/values.ts'
import { untilWoken } from '../../engine/following.ts'
import type { Answer, Held, Ref, Settlement, StepResult } from '../../stores/contract/store.ts'
import { JobDamaged } from '../../stores/errors.ts'
import { SILENT_AFTER_MS } from '../../stores/worker-info.ts'
import { RequestRefused } from '../errors.ts'
import { type Lease, leaseText, readLease } from '../lease-text.ts'
import { type Route, type RouteCall, WORK } from '../route.ts'
import {
  anything,
  count,
  flag,
  type JsonSchema,
  list,
  name,
  oneOf,
  record,
  text,
  time,
  whole,
} from '../schema.ts'

const CLAIM_MAX = 100
const WAIT_MAX_MS = 30_000
const LEASE_DEFAULT_MS = 30_000
const NAMES_MAX = 100
const BEATS_MAX = 1000
const ROUNDS_MAX = 10
const EFFECTS_MAX = 1000
const REPORT_MS = 5000
const STACK_MAX = 20_000
const STATES = { working: 'Processing', idle: 'Idle', draining: 'Draining' } as const

/** Registers a worker, and reports that it is alive. */
async function report({ pawl, params, body }: RouteCall): Promise<unknown> {
  const { activity = 'idle', ...info } = body as { activity?: keyof typeof STATES }
  const id = params.id as string
  await pawl.store.reportWorker({ id, state: STATES[activity], info: JSON.stringify(info) })
  return { reportEveryMs: REPORT_MS, goneAfterMs: SILENT_AFTER_MS }
}

async function remove({ pawl, params }: RouteCall): Promise<unknown> {
  await pawl.store.removeWorker(params.id as string)
  return { removed: true }
}

/** Claims jobs; if there are none, waits for some. */
function claim(call: RouteCall): Promise<unknown> {
  return call.claims.hold(async () => {
    const { store, internals } = call.pawl
    const { timers, clock } = internals.environment
    const { worker, queues, types, limit = 1, leaseMs = LEASE_DEFAULT_MS, waitMs = 0 } = call.body
    const own = { ...(queues && { queues }), ...(types && { types }) }
    const until = clock.now() + waitMs
    while (true) {
      const idleMs = await call.maintain()
      if (call.signal.aborted) return { jobs: [] }
      const held = await store.claim({ worker, limit, leaseMs, start: true, ...own })
      const leftMs = until - clock.now()
      if (call.signal.aborted) return releaseAll(call, held)
      if (held.length > 0 || leftMs <= 0) {
        return { jobs: (await Promise.all(held.map((one) => claimedJob(call, one)))).flat() }
      }
      await untilWoken(store, timers, call.signal, Math.max(1, Math.min(leftMs, idleMs)))
    }
  })
}

/** The client is gone: its jobs need not wait for the end of their leases. */
async function releaseAll(call: RouteCall, held: readonly Held[]): Promise<unknown> {
  const settlements = held.map((one): Settlement => {
    const { attempt, execution } = one.job
    const fence = { attempt, claim: execution?.claim as string }
    return { held: one, command: { kind: 'release', fence } }
  })
  if (settlements.length > 0) await call.pawl.store.settle(settlements)
  return { jobs: [] }
}

/** A job whose steps cannot be read is set aside by the store; the worker does not get it. */
async function claimedJob(call: RouteCall, held: Held): Promise<unknown[]> {
  try {
    return [await jobWithSteps(call, held)]
  } catch (error) {
    if (error instanceof JobDamaged) return []
    throw error
  }
}

/** Later attempts get the results of the steps that earlier ones finished. */
async function jobWithSteps({ pawl }: RouteCall, held: Held): Promise<unknown> {
  const { job, ref, input } = held
  const { id, type, queue, attempt, tags, key, timeoutMs, deadlineAt, execution } = job
  const steps: readonly StepResult[] = attempt > 1 ? await pawl.store.steps(ref, 'json') : []
  return {
    ...{ id, type, queue, attempt, tags, key, timeoutMs, deadlineAt },
    lease: leaseText(held),
    leaseUntil: execution?.leaseUntil,
    input: JSON.parse(input),
    steps: steps.map(({ name: own, n, payload }) => ({
      name: own,
      n,
      result: JSON.parse(payload),
    })),
  }
}

interface BeatRequest {
  readonly lease: string
  readonly progress?: unknown
}

/** Renews leases. One that is lost must not be worked on any longer. */
async function heartbeat({ pawl, body }: RouteCall): Promise<unknown> {
  const { leaseMs = LEASE_DEFAULT_MS } = body
  const answer: { lost: string[]; cancelling: string[] } = { lost: [], cancelling: [] }
  for (const round of roundsOf(body.beats)) {
    const beats = [...round].map(([ref, { lease, progress }]) => {
      const { fence } = readLease(lease)
      const { bounds } = pawl.internals
      return { ref, fence, ...(progress !== undefined && { progress: storable(progress, bounds) }) }
    })
    const { lost, cancelling } = await pawl.store.heartbeat(beats, leaseMs)
    const leaseOf = (ref: Ref) => (round.get(ref) as BeatRequest).lease
    answer.lost.push(...lost.map(leaseOf))
    answer.cancelling.push(...cancelling.map(leaseOf))
  }
  return answer
}

/** The store answers by job, so an old and a new lease of one job need a call each. */
function roundsOf(beats: readonly BeatRequest[]): Map<Ref, BeatRequest>[] {
  const rounds: Map<Ref, BeatRequest>[] = []
  for (const beat of beats) {
    const { ref } = readLease(beat.lease)
    let round = rounds.find((one) => !one.has(ref))
    if (round === undefined) {
      if (rounds.length >= ROUNDS_MAX) throw new RequestRefused(400, 'A job has too many leases')
      round = new Map()
      rounds.push(round)
    }
    round.set(ref, beat)
  }
  return rounds
}

type Bounds = RouteCall['pawl']['internals']['bounds']

/** A value of a request as a payload. Tags such as {"@pawl:date":…} are kept. */
function storable(value: unknown, bounds: Bounds): string {
  return encodeValue(decodeValue(JSON.stringify(value)), bounds)
}

/** The job of a lease as it is now. The store decides whether the lease still holds it. */
async function heldBy(call: RouteCall): Promise<{ held: Held; lease: Lease }> {
  const lease = readLease(call.body.lease)
  const job = await call.pawl.store.get(lease.jobId)
  if (job === undefined) throw new StaleFence(lease.jobId, 'not-held')
  return { held: { ref: lease.ref, job, input: 'null' }, lease }
}

const settling =
  (settlementOf: (call: RouteCall, lease: Lease, job: Job) => Omit<Settlement, 'held'>) =>
  async (call: RouteCall): Promise<unknown> => {
    const { held, lease } = await heldBy(call)
    const settlement = { held, ...settlementOf(call, lease, held.job) }
    const { answers } = await call.pawl.store.settle([settlement])
    return outcomeOf(answers[0] as Answer)
  }

function outcomeOf(answer: Answer): unknown {
  if (answer.kind === 'rejected') throw answer.error
  const { id, state, outcome, runAt } = answer.job
  return { kind: answer.kind, id, state, outcome, runAt }
}

const step = settling(({ body, pawl }, { fence }) => ({
  command: { kind: 'step', fence, name: body.name, n: body.n ?? 1 },
  payload: storable(body.result ?? null, pawl.internals.bounds),
}))

const release = settling((_call, { fence }) => ({ command: { kind: 'release', fence } }))

const snooze = settling(({ body, pawl }, { fence }) => {
  const runAt = pawl.store.now() + body.delayMs
  return { command: { kind: 'suspend', fence, runAt, reason: 'snoozed' } }
})

const acknowledge = settling((_call, { fence }) => ({ command: { kind: 'cancel', fence } }))

const fail = settling(({ body, pawl }, { fence }, job) => ({
  command: { kind: 'fail', fence, failure: failureIn(body, job, pawl.internals.redact) },
}))

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
  const result = storable(body.result ?? null, bounds)
  const effects = (body.effects ?? []) as readonly { name: string; payload?: unknown }[]
  if (effects.length === 0) {
    const command = { kind: 'commit', fence: lease.fence } as const
    const { answers } = await pawl.store.settle([{ held, command, payload: result }])
    return outcomeOf(answers[0] as Answer)
  }
  const execution = { ...held.job.execution, claim: lease.fence.claim } as Job['execution']
  const job = { ...held.job, attempt: lease.fence.attempt, execution }
  const answer = await pawl.store.commit({ ...held, job }, (tx) => {
    for (const { name: own, payload = null } of effects) tx.effect(own, storable(payload, bounds))
    return result
  })
  if (answer.kind === 'rejected') throw answer.error
  const { id, state, outcome, runAt } = answer.job
  return { kind: answer.kind, id, state, outcome, runAt }
}

const LEASE = { lease: text('from the claim', { minLength: 1, maxLength: 1000 }) }
const LEASE_MS = count('how long a lease lasts; 30000 if absent', 1, LEASE_MAX_MS)
const nullableText = { type: ['string', 'null'] }
const nullableWhole = { type: ['integer', 'null'] }

const SETTLED = record({
  kind: oneOf(['done', 'same', 'asked'], 'same: the report was written before'),
  id: text(),
  state: text(),
  outcome: nullableText,
  runAt: nullableWhole,
})

const CLAIMED = record({
  id: text(),
  type: text(),
  queue: text(),
  attempt: whole(),
  tags: list(text()),
  key: nullableText,
  timeoutMs: nullableWhole,
  deadlineAt: nullableWhole,
  lease: text('send it with every report about the job'),
  leaseUntil: time(),
  input: anything('the input as JSON'),
  steps: list(record({ name: text(), n: whole(), result: anything() })),
})

const names = (says: string) => list(name(), { maxItems: NAMES_MAX, description: says })

interface Report {
  readonly verb: string
  readonly operation: string
  readonly summary: string
  readonly body: JsonSchema
  readonly run: Route['run']
}

const REPORTS: readonly Report[] = [
  {
    verb: 'step',
    operation: 'reportStep',
    summary: 'Records the result of a step. Later attempts get it with their claim.',
    body: record(
      { ...LEASE, name: name('the name of the step') },
      {
        n: count('the number of the step under this name; 1 if absent', 1, 1_000_000),
        result: anything(),
      },
    ),
    run: step,
  },
  {
    verb: 'commit',
    operation: 'commitJob',
    summary: 'Commits a job with its result and its effects, in one transaction.',
    body: record(LEASE, {
      result: anything('null if absent'),
      effects: list(record({ name: name() }, { payload: anything() }), { maxItems: EFFECTS_MAX }),
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
      },
    ),
    run: fail,
  },
  {
    verb: 'release',
    operation: 'releaseJob',
    summary: 'Releases a job without an attempt, so that another worker can claim it.',
    body: record(LEASE),
    run: release,
  },
  {
    verb: 'snooze',
    operation: 'snoozeJob',
    summary: 'Ends an attempt without a failure; the job runs again after a delay.',
    body: record({ ...LEASE, delayMs: count('the delay', 0, DELAY_MAX_MS) }),
    run: snooze,
  },
  {
    verb: 'cancel',
    operation: 'confirmCancel',
    summary: 'Ends a job as cancelled whose cancellation was asked for.',
    body: record(LEASE),
    run: acknowledge,
  },
]

export const routes: readonly Route[] = [
  {
    method: 'POST',
    path: '/api/v1/workers/{id}',
    operation: 'reportWorker',
    summary: 'Registers a worker, and reports that it is alive. Repeat it every five seconds.',
    roles: WORK,
    body: record(
      {},
      {
        activity: oneOf(Object.keys(STATES), 'idle if absent'),
        queues: names('the queues that it claims from; all if absent'),
        types: names('the job types that it knows; all if absent'),
        running: count('how many jobs it works on', 0, 1_000_000),
        concurrency: count('how many jobs it can work on', 0, 1_000_000),
      },
    ),
    answer: record({ reportEveryMs: whole(), goneAfterMs: whole() }),
    run: report,
  },
  {
    method: 'DELETE',
    path: '/api/v1/workers/{id}',
    operation: 'removeWorker',
    summary: 'Removes a worker that has stopped from the list.',
    roles: WORK,
    answer: record({ removed: flag() }),
    run: remove,
  },
  {
    method: 'POST',
    path: '/api/v1/claim',
    operation: 'claimJobs',
    summary: 'Claims ready jobs. If there are none, waits up to `waitMs` for some.',
    details: 'If the client disconnects while it waits, the jobs are released.',
    roles: WORK,
    body: record(
      { worker: name('the id of the worker') },
      {
        queues: names('in order of preference; all if absent'),
        types: names('the job types that it knows; all if absent'),
        limit: count('how many jobs; 1 if absent', 1, CLAIM_MAX),
        leaseMs: LEASE_MS,
        waitMs: count('how long to wait for a job; 0 if absent', 0, WAIT_MAX_MS),
      },
    ),
    lasts: true,
    answer: record({ jobs: list(CLAIMED) }),
    run: claim,
  },
  {
    method: 'POST',
    path: '/api/v1/leases/heartbeat',
    operation: 'renewLeases',
    summary: 'Renews leases, and says which are lost and which jobs are to be cancelled.',
    roles: WORK,
    body: record(
      {
        beats: list(record(LEASE, { progress: anything('how far the attempt is') }), {
          maxItems: BEATS_MAX,
        }),
      },
      { leaseMs: LEASE_MS },
    ),
    answer: record({ lost: list(text()), cancelling: list(text()) }),
    run: heartbeat,
  },
  ...REPORTS.map(
    ({ verb, ...own }): Route => ({
      method: 'POST',
      path: `/api/v1/leases/${verb}`,
      roles: WORK,
      errors: [409],
      answer: SETTLED,
      ...own,
    }),
  ),
]
