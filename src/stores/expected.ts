/** The compare-and-set of commands whose asker says in which version a job must be. */
import type { Job } from '../core/job/job.ts'

/** Whether a job is no longer as its asker saw it; false if the asker does not say. */
export function hasMoved(job: Job, seq: number | undefined): boolean {
  return seq !== undefined && job.seq !== seq
}
