/**
 * The job as folded from its facts, and nothing that facts do not give. One set of names serves the
 * fields of documents 000 to 003; `views.ts` gives each document's own.
 *
 * `execution.leaseUntil` is the one volatile field: the claim fact holds the first expiry, a store
 * overlays the present one, and the closing fact holds the last. Heartbeats write no facts.
 */
import type { ExecutionStatus } from '../execution.ts'
import type { Outcome } from '../lifecycles/lifecycle.ts'
import type { JobPolicy } from '../retry.ts'

/** The last failure that the job has met; null again once it succeeds. */
export interface JobError {
  readonly message: string
  readonly kind: string
  /** Stays RETRYABLE when the budget is spent: the failure was, the job ran out of retries. */
  readonly type: 'RETRYABLE' | 'TERMINAL'
}

/** The execution that holds the job, or that committed it. */
export interface CurrentExecution {
  readonly status: Exclude<ExecutionStatus, 'ABORTED'>
  readonly claim: string
  readonly worker: string
  /** Volatile. */
  readonly leaseUntil: number
}

/** What never changes after the job was created. */
export interface JobAttributes {
  readonly type: string
  readonly queue: string
  readonly lifecycle: string
  readonly lifecycleVersion: number
  readonly tags: readonly string[]
  readonly key: string | null
  readonly limitKey: string | null
  /** The job of which this one is a copy, where a lifecycle has no redrive. */
  readonly retryOf: string | null
  /** Bounds one attempt; passing it is a retryable failure. */
  readonly timeoutMs: number | null
  /** Bounds the job as a whole; passing it is terminal. */
  readonly deadlineAt: number | null
  /** Null where it is the lifecycle's own. */
  readonly policy: JobPolicy | null
}

/** A job: the fold of its facts. */
export interface Job extends JobAttributes {
  readonly id: string
  readonly state: string
  /** The number of the last fact. */
  readonly seq: number
  /** The number of leases ever given; only rises. */
  readonly attempt: number
  readonly failures: number
  readonly crashes: number
  readonly releases: number
  readonly priority: number
  /** Null while no due time was ever set. */
  readonly runAt: number | null
  readonly createdAt: number
  readonly startedAt: number | null
  readonly endedAt: number | null
  readonly updatedAt: number
  readonly outcome: Outcome | null
  /** A stable word that says why the job is where it is. */
  readonly reason: string | null
  readonly error: JobError | null
  /** Set while the job is parked in a lifecycle that has no parked state (rule G7). */
  readonly blockedReason: string | null
  /** Set while an expired job waits for an operator's approval. */
  readonly stalled: boolean
  readonly execution: CurrentExecution | null
}

/** Whether the job's effect is true already. */
export function isCommitted(job: Job): boolean {
  return job.execution?.status === 'COMMITTED' || job.execution?.status === 'DONE'
}

/**
 * When the job came into its present state, as far as its fields say: the start of the attempt if
 * it is held, else the time of its last fact. A fact that takes no edge, such as a new priority,
 * therefore counts as a new beginning.
 */
export function enteredAt({ execution, startedAt, updatedAt }: Job): number {
  return execution === null ? updatedAt : (startedAt ?? updatedAt)
}
