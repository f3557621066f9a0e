/**
 * How a waiter is released, parked or ended when what it waits for has ended; see `links.ts`. A
 * store looks at the links under the lock of the waiter. Nothing else starts a waiter (promise
 * P19), except an operator who forces it.
 */
import { DependencyOpen } from '../errors.ts'
import { type Lifecycle, pathOf } from '../lifecycles/lifecycle.ts'
import type { Command, CommandKind } from './commands.ts'
import {
  type Accepted,
  abortChange,
  accept,
  type Decision,
  type FactFields,
  follow,
  note,
  offPath,
  reject,
  SAME,
  type Situation,
} from './decision.ts'
import type { Fact } from './facts.ts'
import type { Job, JobError } from './job.ts'
import {
  ARRIVED,
  arrivedLinks,
  DEPENDENCY_FAILED,
  isWaiter,
  LINKS,
  type Look,
  NOT_NEEDED,
} from './links.ts'
import { RESUMED } from './waits.ts'

type Of<K extends Command['kind']> = Extract<Command, { kind: K }>

/** The commands that would start a job. */
const STARTING: readonly CommandKind[] = ['submit', 'schedule', 'reschedule', 'redrive']

/** Rejects a command that would start a waiter. `undefined` if the command may be decided. */
export function guardWaiter(job: Job, command: Command): Decision | undefined {
  if (!isWaiter(job) || !STARTING.includes(command.kind)) return undefined
  if (command.kind === 'redrive' && (command.arrived || command.missed)) return undefined
  return reject(new DependencyOpen(job.id, command.kind))
}

/** Decides what the end of others means for a waiter. */
export function decideArrive(situation: Situation, { look }: Of<'arrive'>): Decision {
  const { lifecycle, job, context } = situation
  if (!isWaiter(job) || job.outcome !== null) return SAME
  if (job.state === lifecycle.targets.get('wait')) {
    if (look.open) return SAME
    const path = pathOf(lifecycle, job.state, 'signal') ?? pathOf(lifecycle, job.state, 'due')
    if (path === undefined) return offPath(situation, 'signal')
    // A job with a blocked reason leaves the state as well, and stays parked.
    return accept(situation, 'arrive', path, { runAt: context.now, reason: RESUMED })
  }
  // A person has moved or parked it. A redrive looks at the links again.
  const isOthers = job.blockedReason !== null && job.blockedReason !== DEPENDENCY_FAILED
  if (job.state !== lifecycle.machine.initial || isOthers) return SAME
  if (look.failed !== undefined) return decideFailed(situation, look.failed)
  if (look.hit !== undefined) return release(situation, look)
  if (!look.open) {
    const isMissed = (job.links & LINKS.failure) !== 0
    return isMissed ? cancelWaiter(situation, { reason: NOT_NEEDED }) : release(situation, look)
  }
  // What had failed was redriven.
  const isOver = job.blockedReason === DEPENDENCY_FAILED
  return isOver ? note(situation, 'arrive', { blockedReason: null }) : SAME
}

/** A dependency came out otherwise than needed. */
function decideFailed(situation: Situation, dependency: string): Decision {
  const { job } = situation
  const fields = { reason: DEPENDENCY_FAILED, dependency }
  if (job.links & LINKS.cancels) return cancelWaiter(situation, fields)
  if (job.links & LINKS.fails) {
    // The field `dependency` of the fact names it.
    const message = 'A job that this one waited for did not succeed'
    const error: JobError = { message, kind: DEPENDENCY_FAILED, type: 'TERMINAL' }
    return failWaiter(situation, { ...fields, error })
  }
  if (job.blockedReason !== null) return SAME
  return note(situation, 'park', { ...fields, blockedReason: DEPENDENCY_FAILED })
}

/** Ends a waiter that never starts. */
export function cancelWaiter(situation: Situation, fields: FactFields): Decision {
  return follow(situation, 'cancel', fields, 'cancelled')
}

/**
 * Fails a dependent that has never started. It goes the way of a job that is submitted, claimed and
 * fails, in one step; the engine opens the attempt and aborts it (rule G1).
 */
export function failWaiter(situation: Situation, fields: FactFields): Accepted {
  const { lifecycle } = situation
  const path = [
    ...submitPath(lifecycle),
    lifecycle.held,
    ...(pathOf(lifecycle, lifecycle.held, 'fail') as readonly string[]),
  ]
  const execution = abortChange(situation, path, 'error') as NonNullable<Fact['execution']>
  return accept(situation, 'arrive', path, { ...fields, execution })
}

/** Starts a dependent. Also for a redrive of one that a person had parked. */
export function release(situation: Situation, look: Pick<Look, 'hit'> = {}): Decision {
  const { lifecycle, job, context } = situation
  return accept(situation, 'arrive', submitPath(lifecycle), {
    runAt: context.now,
    reason: ARRIVED,
    links: arrivedLinks(job.links),
    ...(job.blockedReason !== null && { blockedReason: null }),
    ...(look.hit !== undefined && { dependency: look.hit }),
  })
}

/** The way from the initial state to the ready one; empty if they are the same. */
function submitPath(lifecycle: Lifecycle): readonly string[] {
  return pathOf(lifecycle, lifecycle.machine.initial, 'submit') ?? []
}
