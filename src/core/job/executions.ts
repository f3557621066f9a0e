/**
 * Executions are a view over the ledger: document 001's records, rebuilt from facts. For its
 * lifecycle the job's state is in turn a function of them, which `stateOfExecutions` states.
 */
import { type AbortReason, type ExecutionStatus, executionId } from '../execution.ts'
import type { Fact, Timing } from './facts.ts'
import type { JobError } from './job.ts'

/** One attempt at a job. */
export interface Execution {
  readonly execId: string
  readonly jobId: string
  readonly attempt: number
  readonly leaseOwner: string
  /** The last expiry that a fact knows of; a live lease may have been renewed since. */
  readonly leaseExpiresAt: number
  readonly status: ExecutionStatus
  readonly startedAt: number | null
  readonly finishedAt: number | null
  /** How long it waited and took; null while it is open, and if its facts do not say. */
  readonly timing: Timing | null
  readonly error: JobError | null
  readonly abort: AbortReason | null
  /** The job ended with this aborted attempt. */
  readonly final: boolean
}

/** Every attempt that the facts tell of, in order. */
export function executionsOf(facts: readonly Fact[]): Execution[] {
  const executions = new Map<number, Execution>()
  for (const fact of facts) {
    const change = fact.execution
    if (change === undefined) continue
    const status = change.statuses[change.statuses.length - 1] as ExecutionStatus
    const opened = executions.get(change.attempt)
    const started = change.statuses.includes('IN_PROGRESS') ? fact.at : null
    executions.set(change.attempt, {
      execId: executionId(fact.jobId, change.attempt),
      jobId: fact.jobId,
      attempt: change.attempt,
      leaseOwner: opened?.leaseOwner ?? (change.worker as string),
      leaseExpiresAt: change.leaseUntil ?? (opened as Execution).leaseExpiresAt,
      status,
      startedAt: started ?? opened?.startedAt ?? null,
      finishedAt: status === 'DONE' || status === 'ABORTED' ? fact.at : null,
      timing: fact.timing ?? opened?.timing ?? null,
      error: (status === 'ABORTED' ? fact.error : undefined) ?? null,
      abort: change.abort ?? null,
      final: change.final ?? false,
    })
  }
  return [...executions.values()]
}

/** Document 001: the state of a job of lifecycle `leased`, from its executions alone. */
export function stateOfExecutions(
  executions: readonly Pick<Execution, 'status' | 'final'>[],
): 'PENDING' | 'RUNNING' | 'SUCCEEDED' | 'FAILED' {
  if (executions.some(({ status }) => status === 'DONE')) return 'SUCCEEDED'
  if (executions.some(({ status }) => status !== 'ABORTED')) return 'RUNNING'
  return executions.some(({ final }) => final) ? 'FAILED' : 'PENDING'
}
