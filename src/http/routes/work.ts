/**
 * The protocol of workers in any language; docs/reference/worker-protocol.md describes it. A worker
 * claims jobs and gets a lease for each. Every report names the lease. A report under a lease that
 * was lost is refused with `E_STALE_FENCE` and changes nothing.
 */
import { LEASE_MAX_MS } from '../../core/job/fence.ts'
import { type TraceContext, traceparentOf } from '../../core/trace.ts'
import { untilWoken } from '../../engine/following.ts'
import { mayHaveWaited } from '../../engine/worker/waits.ts'
import type {
  ClaimRequest,
  Held,
  Ref,
  Settlement,
  StepResult,
} from '../../stores/contract/store.ts'
import { JobDamaged } from '../../stores/errors.ts'
import { SILENT_AFTER_MS } from '../../stores/worker-info.ts'
import { RequestRefused } from '../errors.ts'
import { leaseText, readLease } from '../lease-text.ts'
import { type Route, type RouteCall, WORK } from '../route.ts'
import { anything, count, flag, list, name, oneOf, record, text, time, whole } from '../schema.ts'
import {
  endView,
  LEASE,
  NULLABLE_TEXT,
  NULLABLE_WHOLE,
  reports,
  storable,
  WAIT_END,
} from './work-reports.ts'

const CLAIM_MAX = 100
const WAIT_MAX_MS = 30_000
const LEASE_DEFAULT_MS = 30_000
const NAMES_MAX = 100
const BEATS_MAX = 1000
const ROUNDS_MAX = 10
const REPORT_MS = 5000
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
    const { body, maintenance, pawl, signal } = call
    const { store, internals } = pawl
    const { timers, clock } = internals.environment
    const until = clock.now() + (body.waitMs ?? 0)
    while (true) {
      await maintenance.run()
      if (signal.aborted) return { jobs: [] }
      const held = await store.claim(claimOf(body))
      if (signal.aborted) return releaseAll(call, held)
      if (held.length > 0) return { jobs: await jobsOf(call, held) }
      const idleMs = await maintenance.untilNext()
      const leftMs = until - clock.now()
      // If a job is due that waits to be promoted, the next turn promotes and claims it.
      if (leftMs <= 0 && idleMs > 0) return { jobs: [] }
      if (idleMs > 0) await untilWoken(store, timers, signal, Math.min(leftMs, idleMs))
    }
  })
}

function claimOf(body: RouteCall['body']): ClaimRequest {
  const { worker, queues, types, limit = 1, leaseMs = LEASE_DEFAULT_MS, start = true } = body
  return { worker, limit, leaseMs, start, ...(queues && { queues }), ...(types && { types }) }
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

async function jobsOf(call: RouteCall, held: readonly Held[]): Promise<unknown[]> {
  const { body, pawl } = call
  const ids = body.trace ? held.map(({ job }) => job.id) : []
  const traces = ids.length === 0 ? new Map() : await pawl.store.traces(ids, 'create')
  const jobs = await Promise.all(
    held.map((one) => claimedJob(call, one, traces.get(one.job.id) as TraceContext | undefined)),
  )
  return jobs.flat()
}

/** A job whose steps cannot be read is set aside by the store; the worker does not get it. */
async function claimedJob(
  call: RouteCall,
  held: Held,
  trace: TraceContext | undefined,
): Promise<unknown[]> {
  try {
    return [await jobWithSteps(call, held, trace)]
  } catch (error) {
    if (error instanceof JobDamaged) return []
    throw error
  }
}

/** Later attempts get the results of the steps that earlier ones finished. */
async function jobWithSteps(
  { pawl }: RouteCall,
  held: Held,
  trace: TraceContext | undefined,
): Promise<unknown> {
  const { job, ref, input } = held
  const { id, type, queue, attempt, tags, key, timeoutMs, deadlineAt, execution } = job
  const steps: readonly StepResult[] = attempt > 1 ? await pawl.store.steps(ref, 'json') : []
  const waits = mayHaveWaited(job) ? (await pawl.store.waits.history(id)).waits : []
  return {
    ...{ id, type, queue, attempt, tags, key, timeoutMs, deadlineAt },
    lease: leaseText(held),
    leaseUntil: execution?.leaseUntil,
    started: execution?.status === 'IN_PROGRESS',
    traceparent: trace === undefined ? null : traceparentOf(trace),
    tracestate: trace?.traceState ?? null,
    input: JSON.parse(input),
    steps: steps.map(({ name: own, n, payload }) => ({
      name: own,
      n,
      result: JSON.parse(payload),
    })),
    waits: waits.map(({ end, ...own }) => ({ ...own, ...(end && { end: endView(end) }) })),
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

const LEASE_MS = count('how long a lease lasts; 30000 if absent', 1, LEASE_MAX_MS)

const CLAIMED = record({
  id: text(),
  type: text(),
  queue: text(),
  attempt: whole(),
  tags: list(text()),
  key: NULLABLE_TEXT,
  timeoutMs: NULLABLE_WHOLE,
  deadlineAt: NULLABLE_WHOLE,
  lease: text('send it with every report about the job'),
  leaseUntil: time(),
  started: flag('whether the attempt is in progress; false past the deadline'),
  traceparent: { ...NULLABLE_TEXT, description: 'the span that enqueued the job, with `trace`' },
  tracestate: NULLABLE_TEXT,
  input: anything('the input as JSON'),
  steps: list(record({ name: text(), n: whole(), result: anything() })),
  waits: list(
    record(
      { for: text(), name: text(), n: whole(), until: NULLABLE_WHOLE },
      {
        end: { ...WAIT_END, description: 'how it ended; absent if the job has waited for it last' },
      },
    ),
    { description: 'the waits of earlier attempts, in the order in which they began' },
  ),
})

const names = (says: string) => list(name(), { maxItems: NAMES_MAX, description: says })

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
        limit: count('how many jobs; 1 if absent', 0, CLAIM_MAX),
        leaseMs: LEASE_MS,
        start: flag(
          'whether the work begins at once; otherwise send `start` first. True if absent',
        ),
        trace: flag('return the span that enqueued each job'),
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
  ...reports,
]
