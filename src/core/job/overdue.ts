/**
 * Ends a job that waits past its deadline. The facts are those of a worker that claims such a job:
 * the job becomes ready, the engine takes its lease without starting it, and fails it.
 */
import { DeadlinePassed } from '../errors.ts'
import { ownFailure } from '../failure.ts'
import type { Lifecycle } from '../lifecycles/lifecycle.ts'
import type { Command, Context } from './commands.ts'
import { decide } from './decide.ts'
import { failWaiter } from './decide-links.ts'
import { evolve } from './evolve.ts'
import type { Fact } from './facts.ts'
import { isPastDeadline, type Job } from './job.ts'
import { laneOf } from './lanes.ts'
import { isWaiter } from './links.ts'

/** How long the engine holds the lease: it ends in the same transaction. */
const LEASE_MS = 1

/**
 * Returns the facts that end the job, in order; none if its deadline has not passed, or if it can
 * neither be claimed now nor be made ready. `claim` is a new id.
 */
export function overdueFacts(
  lifecycle: Lifecycle,
  job: Job,
  context: Context,
  claim: string,
): Fact[] {
  const { now } = context
  if (!isPastDeadline(job, now)) return []
  const error = new DeadlinePassed(job.id, job.deadlineAt as number)
  const failure = ownFailure(error, { class: 'terminal', kind: 'deadline' }, { type: job.type })
  // A dependent is failed where it waits: it must not become ready.
  if (isWaiter(job) && job.state === lifecycle.machine.initial) {
    if (job.blockedReason !== null) return []
    const { message, kind } = failure
    const fields = { error: { message, kind, type: 'TERMINAL' } as const, reason: kind }
    return [failWaiter({ lifecycle, job, context }, fields).fact]
  }
  const facts: Fact[] = []
  let current = job
  const apply = (command: Command): void => {
    const decision = decide(lifecycle, current, command, context)
    if (decision.kind !== 'fact') return
    facts.push(decision.fact)
    current = evolve(current, decision.fact)
  }
  const isReady = () => laneOf(lifecycle, current, now) === 'ready'
  // Each lifecycle has one of these ways out of the state in which the job waits.
  for (const kind of ['due', 'reschedule', 'submit'] as const) {
    if (!isReady()) apply(kind === 'reschedule' ? { kind, runAt: now } : { kind })
  }
  if (!isReady()) return []
  apply({ kind: 'claim', claim, worker: 'engine', leaseUntil: now + LEASE_MS, start: false })
  apply({ kind: 'fail', fence: { attempt: current.attempt, claim }, failure })
  return facts
}
