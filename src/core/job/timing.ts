/**
 * The times of an attempt, which the fact that closes it records: how long the job had been due
 * when the attempt began, and how long the attempt took.
 *
 * Both are differences of times of the store, which can be set back by a person or by a server that
 * takes over from another. A difference is therefore 0 at least.
 */
import type { ExecutionChange, Timing } from './facts.ts'
import type { Job } from './job.ts'

/** Whether a step closes an attempt: it commits, or it is aborted. */
export function closesAttempt({ statuses }: Pick<ExecutionChange, 'statuses'>): boolean {
  return statuses.includes('COMMITTED') || statuses.includes('ABORTED')
}

/**
 * The times of the attempt that a step closes, given the job before the step. An attempt that the
 * engine opens and aborts in the same step (rule G1) takes no time.
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

/** How long a job had been due when its attempt began. A job that was never due did not wait. */
export function queueMsOf({ runAt }: Pick<Job, 'runAt'>, startedAt: number): number {
  return runAt === null ? 0 : Math.max(0, startedAt - runAt)
}
