/**
 * How the engine sets aside a job whose stored row is damaged. The fact is decided on the fold of
 * the job's facts, never on the row. The job enters no other state: it gets the blocked reason
 * `damaged` and waits in the lane for parked jobs. An open attempt is aborted and released. When a
 * repair removes the reason, the job continues in its state.
 */
import { type Lifecycle, pathOf } from '../lifecycles/lifecycle.ts'
import { abortChange, accept, note } from './decision.ts'
import type { ExecutionChange, Fact } from './facts.ts'
import { isCommitted, type Job } from './job.ts'

/** The reason and blocked reason of a job that the engine has set aside. */
export const DAMAGED = 'damaged'

/** The key in the fact's metadata under which the damage is described. */
export const DAMAGE = 'damage'

/** The description if a step would have to run again, because its result is lost. */
export const STEP_DAMAGED = 'the result of a step cannot be read'

const DAMAGE_MAX = 1000

/**
 * Returns the fact that sets a job aside. Returns `undefined` if the job has ended, is committed,
 * or is already parked.
 */
export function isolate(
  lifecycle: Lifecycle,
  job: Job,
  now: number,
  why: string,
): Fact | undefined {
  if (job.outcome !== null || isCommitted(job) || job.blockedReason !== null) return undefined
  const metadata = { [DAMAGE]: why.slice(0, DAMAGE_MAX) }
  const context = { now, random: 0, actor: 'engine', metadata } as const
  const situation = { lifecycle, job, context }
  const blocked = { blockedReason: DAMAGED, reason: DAMAGED }
  if (job.execution === null) return note(situation, 'park', blocked).fact
  const path = pathOf(lifecycle, job.state, 'release')
  // The state with the open attempt has no release path. Only a repair can continue the job.
  if (path === undefined) return undefined
  const execution = abortChange(situation, path, 'forced') as ExecutionChange
  return accept(situation, 'park', path, { ...blocked, runAt: now, execution }).fact
}
