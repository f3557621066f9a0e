/**
 * Each lifecycle's document has its own names for a job's fields (rule G12). A view is the job in
 * those names, computed from the fold alone.
 */
import type { Lifecycle } from '../lifecycles/lifecycle.ts'
import { isCommitted, type Job } from './job.ts'

/** A job in the names of its document. */
export type JobView = Readonly<Record<string, unknown>>

/** What is stored beside the facts of a job; it is left out if the caller does not have it. */
export interface ViewPayload {
  readonly input: unknown
}

/** Document 000's job. */
function hardenedView(job: Job): JobView {
  return {
    job_id: job.id,
    status: job.state,
    attempts: job.attempt,
    created_at: job.createdAt,
    updated_at: job.updatedAt,
  }
}

/** Document 001's job, with its payload. */
function leasedView(job: Job, _lifecycle: Lifecycle, payload?: ViewPayload): JobView {
  return {
    job_id: job.id,
    ...(payload !== undefined && { payload: payload.input }),
    state: job.state,
    attempt: job.attempt,
    created_at: job.createdAt,
    updated_at: job.updatedAt,
  }
}

/** Document 002's metadata table. */
function documentView(job: Job, lifecycle: Lifecycle): JobView {
  return {
    jobId: job.id,
    state: job.state,
    createdAt: job.createdAt,
    startedAt: job.startedAt,
    completedAt: job.endedAt,
    retryCount: job.failures,
    maxRetries: lifecycle.policy.retry.max,
    lastError: job.error?.message ?? null,
    errorType: job.error?.type ?? null,
  }
}

/** Document 003's task. Tries are attempts less those that were given back. */
function taskView(job: Job, lifecycle: Lifecycle): JobView {
  const { crashesMax } = job.policy ?? lifecycle.policy
  const lease = job.state === lifecycle.held && !isCommitted(job) ? job.execution : null
  return {
    id: job.id,
    status: job.state,
    try_count: job.attempt - job.releases,
    max_tries: crashesMax + 1,
    lease_owner: lease?.worker ?? null,
    lease_timeout: lease?.leaseUntil ?? null,
    error: job.error?.message ?? null,
    created_at: job.createdAt,
    updated_at: job.updatedAt,
  }
}

/** Every field that all lifecycles share, in our own names. */
function standardView(job: Job, lifecycle: Lifecycle): JobView {
  const policy = job.policy ?? lifecycle.policy
  return {
    id: job.id,
    type: job.type,
    queue: job.queue,
    state: job.state,
    attempt: job.attempt,
    retryCount: job.failures,
    maxRetries: policy.retry.max,
    crashCount: job.crashes,
    maxCrashes: policy.crashesMax,
    releaseCount: job.releases,
    priority: job.priority,
    runAt: job.runAt,
    createdAt: job.createdAt,
    startedAt: job.startedAt,
    endedAt: job.endedAt,
    updatedAt: job.updatedAt,
    outcome: job.outcome,
    reason: job.blockedReason ?? job.reason,
    lastError: job.error?.message ?? null,
    errorType: job.error?.type ?? null,
  }
}

type View = (job: Job, lifecycle: Lifecycle, payload?: ViewPayload) => JobView

const VIEWS = new Map<string, View>([
  ['hardened', hardenedView],
  ['leased', leasedView],
  ['document', documentView],
  ['task', taskView],
])

/** The job in the names of its lifecycle's document. */
export function viewOf(lifecycle: Lifecycle, job: Job, payload?: ViewPayload): JobView {
  return (VIEWS.get(lifecycle.name) ?? standardView)(job, lifecycle, payload)
}
