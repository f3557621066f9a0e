/**
 * What an operator may do to a job, always with a name and a note. Redrive and discard are edges of
 * the lifecycle. Only force and repair may leave the edges of the machine (rule G8). They still
 * keep P3 and P6: they never lead to a held or succeeded state, and never out of an ended one.
 */
import { Committed, InvalidTransition, JobEnded } from '../errors.ts'
import { pathOf } from '../lifecycles/lifecycle.ts'
import type { Command } from './commands.ts'
import { cancelWaiter, release } from './decide-links.ts'
import {
  abortChange,
  accept,
  type Decision,
  follow,
  note,
  offPath,
  reject,
  SAME,
  type Situation,
} from './decision.ts'
import { isCommitted } from './job.ts'
import { isWaiter, NOT_NEEDED } from './links.ts'

type Of<K extends Command['kind']> = Extract<Command, { kind: K }>

/** Parks the job until it is redriven or cancelled. */
export function decidePark(situation: Situation): Decision {
  const { lifecycle, job } = situation
  if (lifecycle.parked !== undefined) {
    return follow(situation, 'park', { reason: 'parked' }, 'forced')
  }
  // Rule G7: without a parked state, the job gets a blocked reason. A running job is released
  // first.
  if (job.outcome !== null) return reject(new JobEnded(job.id, job.state, 'park'))
  if (job.blockedReason !== null) return SAME
  const blocked = { blockedReason: 'parked', reason: 'parked' }
  if (job.execution === null) return note(situation, 'park', blocked)
  const path = pathOf(lifecycle, job.state, 'release') as readonly string[]
  const execution = abortChange(situation, path, 'forced')
  const fields = { ...blocked, runAt: situation.context.now }
  return accept(situation, 'park', path, { ...fields, ...(execution && { execution }) })
}

/** Lets a parked or failed job run again with fresh budgets. Attempts keep counting. */
export function decideRedrive(situation: Situation, command: Of<'redrive'>): Decision {
  const { lifecycle, job, context } = situation
  if (command.missed && isWaiter(job)) return cancelWaiter(situation, { reason: NOT_NEEDED })
  // A dependent that was parked before its first attempt starts as one that was not.
  if (command.arrived && isWaiter(job) && job.state === lifecycle.machine.initial) {
    return release(situation)
  }
  // Rule G6: after the commit only the outbox is reset. The store does that together with this
  // fact.
  if (isCommitted(job)) {
    return job.outcome === null
      ? note(situation, 'redrive', {})
      : reject(new Committed(job.id, 'redrive'))
  }
  if (job.blockedReason !== null) {
    const ready = job.state === lifecycle.ready
    // Parking spent no budget, so none is reset.
    return note(situation, 'redrive', {
      blockedReason: null,
      ...(ready && { runAt: context.now }),
    })
  }
  if (pathOf(lifecycle, job.state, 'redrive') === undefined) return offPath(situation, 'redrive')
  return follow(situation, 'redrive', { resets: true, runAt: context.now })
}

/** Ends a parked job without running it again. */
export function decideDiscard(situation: Situation): Decision {
  return follow(situation, 'discard', { reason: 'discarded' })
}

/** Moves the job to a state that no edge leads to from its current state. */
export function decideForce(situation: Situation, command: Of<'force'>): Decision {
  return offTable(situation, 'force', command.to)
}

/** Records a repair by the doctor. With a target it moves the job, under the rules of force. */
export function decideRepair(situation: Situation, command: Of<'repair'>): Decision {
  if (command.to === undefined) return note(situation, 'repair', {})
  if (isCommitted(situation.job)) return reject(new Committed(situation.job.id, 'repair'))
  return offTable(situation, 'repair', command.to)
}

function offTable(situation: Situation, trigger: 'force' | 'repair', to: string): Decision {
  const { lifecycle, job, context } = situation
  if (job.outcome !== null) return reject(new JobEnded(job.id, job.state, trigger))
  if (to === job.state) return SAME
  const allowed = [...lifecycle.roles]
    .filter(([state, role]) => state !== job.state && role !== 'held' && role !== 'succeeded')
    .map(([state]) => state)
  if (!allowed.includes(to)) {
    return reject(forbidden(situation, trigger, to, allowed))
  }
  // If only the held state leads to the target, the path goes through it (rule G1).
  const ways = lifecycle.machine.edges.filter((edge) => edge.to === to).map(({ from }) => from)
  const throughHeld = ways.every((from) => from === lifecycle.held)
  const execution = abortChange(situation, throughHeld ? ways : [], 'forced')
  const idle = lifecycle.roles.get(to) === 'idle'
  return accept(situation, trigger, [to], {
    reason: trigger === 'force' ? 'forced' : 'repaired',
    runAt: idle ? null : context.now,
    ...(job.blockedReason !== null && { blockedReason: null }),
    ...(execution && { execution }),
  })
}

function forbidden(
  { lifecycle, job }: Situation,
  trigger: 'force' | 'repair',
  to: string,
  allowed: readonly string[],
): InvalidTransition {
  const { name, machine, roles } = lifecycle
  const role = roles.get(to)
  const what =
    role === undefined ? `has no state ${to}` : `${trigger} never leads to a ${role} state`
  // If the edge exists, the message must say why it was refused: the two states alone do not.
  const isEdge = machine.byTarget.get(job.state)?.has(to) === true
  const instead = `In machine "${name}" ${what}; it may lead to ${allowed.join(', ')}.`
  const more = isEdge ? { why: what, instead } : { instead }
  return new InvalidTransition(name, job.state, to, allowed, `${trigger} to ${to}`, more)
}
