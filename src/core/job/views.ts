/**
 * The requirements R0 to R3 use different names for the fields of a job (rule G12). A view is the
 * job in the names of its requirements, computed from the fold alone.
 */
import type { Lifecycle } from '../lifecycles/lifecycle.ts'
import { isCommitted, type Job } from './job.ts'

/** A job in the names of its requirements. */
export type JobView = Readonly<Record<string, unknown>>

/** Data that is stored beside the facts of a job. The view omits it if it is not passed. */
export interface ViewPayload {
  readonly input: unknown
}

/** The job of the hardening requirements (R0). */
function hardenedView(job: Job): JobView {
  return {
    job_id: job.id,
    status: job.state,
    attempts: job.attempt,
    created_at: job.createdAt,
    updated_at: job.updatedAt,
  }
}

/** The job of the state-model requirements (R1), with its payload. */
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

/** The metadata table of the job-lifecycle requirements (R2). */
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

/** The task of the worker-loop requirements (R3). Tries are attempts minus releases. */
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

/** All fields that the lifecycles share, in Pawl's own names. */
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
    maxReleases: policy.releasesMax,
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

/** Returns the job in the names of its lifecycle's requirements. */
export function viewOf(lifecycle: Lifecycle, job: Job, payload?: ViewPayload): JobView {
  return (VIEWS.get(lifecycle.name) ?? standardView)(job, lifecycle, payload)
}
