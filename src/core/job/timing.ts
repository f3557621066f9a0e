/**
 * The times of an attempt: how long the job had been due when the attempt began, and how long the
 * attempt took. The fact that closes the attempt records them.
 *
 * Both are differences of store times. A person, or a failover to another server, can set the
 * store's clock back. A negative difference therefore counts as 0.
 */
import type { ExecutionChange, Timing } from './facts.ts'
import type { Job } from './job.ts'

/** Returns true if a step closes an attempt, by a commit or an abort. */
export function closesAttempt({ statuses }: Pick<ExecutionChange, 'statuses'>): boolean {
  return statuses.includes('COMMITTED') || statuses.includes('ABORTED')
}

/**
 * Returns the times of the attempt that a step closes. `job` is the job before the step. An attempt
 * that the engine opens and aborts in the same step (rule G1) takes no time.
 */
export function timingOf(
  job: Pick<Job, 'runAt' | 'createdAt' | 'startedAt'>,
  { statuses }: Pick<ExecutionChange, 'statuses'>,
  now: number,
): Timing {
  const isOpen = statuses[0] !== 'LEASED'
  const startedAt = isOpen ? (job.startedAt ?? now) : now
  return {
    queueMs: queueMsOf(job, startedAt),
    durationMs: Math.max(0, now - startedAt),
  }
}

/** Returns how long a job had been due when its attempt began; 0 if it was never due. */
export function queueMsOf({ runAt }: Pick<Job, 'runAt'>, startedAt: number): number {
  return runAt === null ? 0 : Math.max(0, startedAt - runAt)
}
