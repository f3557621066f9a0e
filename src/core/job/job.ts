/**
 * The job as folded from its facts. It has no field that facts do not determine. One set of names
 * serves the fields of the requirements R0 to R3; `views.ts` returns a job in the names of each.
 *
 * `execution.leaseUntil` is the only volatile field. The claim fact has the first expiry, the store
 * has the current one, and the closing fact has the last. Heartbeats write no facts.
 */
import type { ExecutionStatus } from '../execution.ts'
import type { Outcome } from '../lifecycles/lifecycle.ts'
import type { JobPolicy } from '../retry.ts'

/** The last failure of the job; null again when the job succeeds. */
export interface JobError {
  readonly message: string
  readonly kind: string
  /** Stays RETRYABLE when the budget is spent: it describes the failure, not the job. */
  readonly type: 'RETRYABLE' | 'TERMINAL'
  /** The name and code of what was thrown, if anything was. */
  readonly name?: string
  readonly code?: string
  /** The same for failures of the same kind at the same place: `fingerprintOf`. */
  readonly fingerprint?: string
}

/** The execution that holds the job or has committed it. */
export interface CurrentExecution {
  readonly status: Exclude<ExecutionStatus, 'ABORTED'>
  readonly claim: string
  readonly worker: string
  /** Volatile: heartbeats change it without a fact. */
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
  /** The gates that it counts in while it runs, as text; see `core/limits/keys.ts`. */
  readonly limitKey: string | null
  /** The job that this one copies, for lifecycles without redrive. */
  readonly retryOf: string | null
  /** Limits one attempt. Exceeding it is a retryable failure. */
  readonly timeoutMs: number | null
  /** Limits the whole job: from this time on nothing starts or commits. A terminal failure. */
  readonly deadlineAt: number | null
  /** Null if the policy of the lifecycle applies. */
  readonly policy: JobPolicy | null
  /**
   * The flow or batch that the job was created in; for an invoked child, its parent. Absent in the
   * fact if there is none.
   */
  readonly flow?: string | null
  /** The number of the job in its flow, or among the children of its invoke, from 0. */
  readonly node?: number | null
}

/** A job: the fold of its facts. */
export interface Job extends JobAttributes {
  readonly id: string
  readonly state: string
  /** The number of the last fact. */
  readonly seq: number
  /** The number of leases ever given to workers; only increases. */
  readonly attempt: number
  readonly failures: number
  readonly crashes: number
  readonly releases: number
  readonly priority: number
  /** The job is ordered as if it had been due so much earlier; see `priority.ts`. */
  readonly aheadMs: number
  /** Null until a due time is set. */
  readonly runAt: number | null
  readonly createdAt: number
  readonly startedAt: number | null
  readonly endedAt: number | null
  readonly updatedAt: number
  readonly outcome: Outcome | null
  /** A stable word that says why the job is in its state. */
  readonly reason: string | null
  readonly error: JobError | null
  /** Set while the job is parked in a lifecycle without a parked state (rule G7). */
  readonly blockedReason: string | null
  /** True while a job with an expired lease waits for an operator's approval. */
  readonly stalled: boolean
  readonly execution: CurrentExecution | null
  readonly flow: string | null
  readonly node: number | null
  /** What connects the job with others, as bits; 0 for most jobs. See `links.ts`. */
  readonly links: number
}

/** Returns true if the deadline of the job has passed. It passes at the millisecond itself. */
export function isPastDeadline({ deadlineAt }: Pick<Job, 'deadlineAt'>, now: number): boolean {
  return deadlineAt !== null && deadlineAt <= now
}

/** Returns true if the effect of the job is committed. */
export function isCommitted(job: Job): boolean {
  return job.execution?.status === 'COMMITTED' || job.execution?.status === 'DONE'
}

/**
 * Returns when the job entered its current state, as far as its fields say: the start of the
 * attempt if it is held, else the time of its last fact. A fact without an edge, such as a new
 * priority, therefore moves this time.
 */
export function enteredAt({ execution, startedAt, updatedAt }: Job): number {
  return execution === null ? updatedAt : (startedAt ?? updatedAt)
}
