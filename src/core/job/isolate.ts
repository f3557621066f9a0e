/**
 * Isolation: how the engine takes a job out of the flow whose stored row is damaged. The fact is
 * decided on the job as its facts fold, never on the row. No state of the lifecycle is entered for
 * it: the job gets the blocked reason `damaged` and waits in the lane for parked jobs, with an open
 * attempt aborted and given back. A repair lifts the reason; then the job goes on where it was.
 */
import { type Lifecycle, pathOf } from '../lifecycles/lifecycle.ts'
import { abortChange, accept, note } from './decision.ts'
import type { ExecutionChange, Fact } from './facts.ts'
import { isCommitted, type Job } from './job.ts'

/** The reason, and blocked reason, of a job that the engine has set aside. */
export const DAMAGED = 'damaged'

/** Under which name the fact says what is wrong with the row. */
export const DAMAGE = 'damage'

/** What it says if a step would have to run again, because its result is lost. */
export const STEP_DAMAGED = 'the result of a step cannot be read'

const DAMAGE_MAX = 1000

/**
 * The fact that sets a job aside. Returns nothing if the job needs none: it has ended, it is
 * committed, or it is parked already.
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
  // An attempt is open in a state that has no way back: only a repair can say what to do.
  if (path === undefined) return undefined
  const execution = abortChange(situation, path, 'forced') as ExecutionChange
  return accept(situation, 'park', path, { ...blocked, runAt: now, execution }).fact
}
