/**
 * Executions are a view over the ledger: the records of the state-model requirements (R1), rebuilt
 * from facts. In the lifecycle `leased` the state of the job is a function of its executions; see
 * `stateOfExecutions`.
 */
import { type AbortReason, type ExecutionStatus, executionId } from '../execution.ts'
import type { ThrownError } from '../thrown.ts'
import type { Fact, Timing } from './facts.ts'
import type { JobError } from './job.ts'

/** One attempt at a job. */
export interface Execution {
  readonly execId: string
  readonly jobId: string
  readonly attempt: number
  readonly leaseOwner: string
  /** The last expiry in a fact. A live lease may have been renewed since. */
  readonly leaseExpiresAt: number
  readonly status: ExecutionStatus
  readonly startedAt: number | null
  readonly finishedAt: number | null
  /** How long the attempt waited and took; null while it is open, or if its facts lack it. */
  readonly timing: Timing | null
  readonly error: JobError | null
  /** What the handler threw; null if the attempt did not fail, or if its facts lack it. */
  readonly thrown: ThrownError | null
  readonly abort: AbortReason | null
  /** True if the job ended with this aborted attempt. */
  readonly final: boolean
}

/** Returns the attempts in the facts, in order. */
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
      thrown: fact.thrown ?? null,
      abort: change.abort ?? null,
      final: change.final ?? false,
    })
  }
  return [...executions.values()]
}

/** Returns the state of a job of lifecycle `leased`, from its executions alone (R1). */
export function stateOfExecutions(
  executions: readonly Pick<Execution, 'status' | 'final'>[],
): 'PENDING' | 'RUNNING' | 'SUCCEEDED' | 'FAILED' {
  if (executions.some(({ status }) => status === 'DONE')) return 'SUCCEEDED'
  if (executions.some(({ status }) => status !== 'ABORTED')) return 'RUNNING'
  return executions.some(({ final }) => final) ? 'FAILED' : 'PENDING'
}
