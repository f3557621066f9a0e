/**
 * `decide` holds the rules of jobs: given the job, a command and the context, it returns a fact,
 * "same" or a rejection. It writes nothing, reads no clock and sees no payload.
 *
 * The order of the checks is part of the rules:
 *
 * 1. The command must be well-formed.
 * 2. The job must exist.
 * 3. The fence must match, so that a late worker learns that it is late (G3).
 * 4. After the commit the job can only succeed (G6).
 * 5. Past the deadline of the job an attempt cannot start, record a step or commit.
 * 6. A job that waits for others is started only by their end (P19).
 * 7. The lifecycle must have a path for the command.
 */
import { Committed, DeadlinePassed, JobExists, JobNotFound } from '../errors.ts'
import type { Lifecycle } from '../lifecycles/lifecycle.ts'
import { findFault } from './checks.ts'
import type { Command, CommandKind, Context } from './commands.ts'
import {
  decideClaim,
  decideCommit,
  decideDone,
  decideExpire,
  decideFail,
  decideRelease,
  decideStart,
  decideStep,
  decideSuspend,
} from './decide-attempt.ts'
import {
  decideCancel,
  decideCreate,
  decideDue,
  decideExhaust,
  decidePrioritise,
  decideReplace,
  decideReschedule,
  decideSchedule,
  decideSubmit,
} from './decide-flow.ts'
import { decideArrive, guardWaiter } from './decide-links.ts'
import {
  decideDiscard,
  decideForce,
  decidePark,
  decideRedrive,
  decideRepair,
} from './decide-operator.ts'
import { type Decision, reject, SAME, type Situation } from './decision.ts'
import { findFenceMismatch, findStale } from './fence.ts'
import { isCommitted, isPastDeadline, type Job } from './job.ts'
import { decideSignal, decideWait } from './waits.ts'

/** Decides one command for one job. `job` is null if it does not exist yet. */
export function decide(
  lifecycle: Lifecycle,
  job: Job | null,
  command: Command,
  context: Context,
): Decision {
  const fault = findFault(command, context)
  if (fault !== undefined) return reject(fault)
  if (command.kind === 'create') {
    return job === null
      ? decideCreate(lifecycle, command, context)
      : reject(new JobExists(command.jobId))
  }
  if (job === null) return reject(new JobNotFound())
  const situation = { lifecycle, job, context }
  return guard(situation, command) ?? dispatch(situation, command)
}

/** Checks fence, commit and deadline. Returns `undefined` if the lifecycle may decide. */
function guard({ job, context }: Situation, command: Command): Decision | undefined {
  const committed = isCommitted(job)
  if ('fence' in command && command.fence !== undefined) {
    // If the reply to a commit was lost, the worker sends it again. The fence then matches the
    // committed execution, and needs no valid lease. Expire is sent by processes without a lease.
    const needsLease = !committed && command.kind !== 'expire'
    const stale = needsLease
      ? findStale(job, command.fence, context.now)
      : findFenceMismatch(job, command.fence)
    if (stale !== undefined) return reject(stale)
    if (committed && command.kind === 'commit') return SAME
  }
  const tooLate = committed && !COMMITTED_COMMANDS.includes(command.kind)
  if (tooLate) return reject(new Committed(job.id, command.kind))
  const isLate = isPastDeadline(job, context.now) && TIMELY_COMMANDS.includes(command.kind)
  if (isLate) return reject(new DeadlinePassed(job.id, job.deadlineAt as number))
  return guardWaiter(job, command)
}

/** The commands that do not apply past the deadline of the job. */
const TIMELY_COMMANDS: readonly CommandKind[] = ['start', 'step', 'wait', 'commit']

/** The commands that apply after the commit. A signal that is known is "same" even then. */
const COMMITTED_COMMANDS: readonly CommandKind[] = ['done', 'redrive', 'repair', 'signal']

function dispatch(situation: Situation, command: Exclude<Command, { kind: 'create' }>): Decision {
  switch (command.kind) {
    case 'submit':
      return decideSubmit(situation)
    case 'schedule':
      return decideSchedule(situation, command)
    case 'due':
      return decideDue(situation)
    case 'reschedule':
      return decideReschedule(situation, command)
    case 'prioritise':
      return decidePrioritise(situation, command)
    case 'replace':
      return decideReplace(situation, command)
    case 'signal':
      return decideSignal(situation, command)
    case 'arrive':
      return decideArrive(situation, command)
    case 'exhaust':
      return decideExhaust(situation)
    case 'claim':
      return decideClaim(situation, command)
    case 'start':
      return decideStart(situation)
    case 'step':
      return decideStep(situation, command)
    case 'commit':
      return decideCommit(situation, command)
    case 'done':
      return decideDone(situation, command)
    case 'fail':
      return decideFail(situation, command)
    case 'release':
      return decideRelease(situation)
    case 'suspend':
      return decideSuspend(situation, command)
    case 'wait':
      return decideWait(situation, command)
    case 'expire':
      return decideExpire(situation, command)
    case 'cancel':
      return decideCancel(situation, command)
    case 'park':
      return decidePark(situation)
    case 'redrive':
      return decideRedrive(situation, command)
    case 'discard':
      return decideDiscard(situation)
    case 'force':
      return decideForce(situation, command)
    case 'repair':
      return decideRepair(situation, command)
  }
}
