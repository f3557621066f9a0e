import type { Job } from '../../core/job/job.ts'
import type { Logger } from '../../core/ports.ts'

/**
 * Returns the deadline of a job that counts. If that of the row differs from that of the facts, the
 * row is damaged and the facts count. If the facts cannot be read, the row counts.
 */
export async function findDeadline(
  job: Job,
  deadlineAt: number,
  {
    deadlineBy,
    logger,
  }: {
    readonly deadlineBy?: (job: Job) => Promise<number | null>
    readonly logger: Logger
  },
): Promise<number | null> {
  const own = deadlineBy === undefined ? deadlineAt : await deadlineBy(job).catch(() => deadlineAt)
  if (own !== deadlineAt) {
    logger.warn(
      { event: 'job.deadline_damaged', job_id: job.id, row: deadlineAt, facts: own },
      'The deadline of the row is not that of the facts, which counts. Run "pawl doctor --plan"',
    )
  }
  return own
}
