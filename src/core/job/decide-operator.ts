/**
 * What a person may do to a job, always named and with a note. Redrive and discard are edges of the
 * lifecycle. Force and repair are the only facts that may leave the table (rule G8), and even they
 * cannot break P3 or P6: never into a held or succeeded state, never out of an ended one.
 */
import { Committed, InvalidTransition, JobEnded } from '../errors.ts'
import { pathOf } from '../lifecycles/lifecycle.ts'
import type { Command } from './commands.ts'
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

type Of<K extends Command['kind']> = Extract<Command, { kind: K }>

/** Takes the job out of the flow until it is redriven or cancelled. */
export function decidePark(situation: Situation): Decision {
  const { lifecycle, job } = situation
  if (lifecycle.parked !== undefined) {
    return follow(situation, 'park', { reason: 'parked' }, 'forced')
  }
  // Rule G7: without a parked state the job carries the reason; a running one is given back first.
  if (job.outcome !== null) return reject(new JobEnded(job.id, job.state, 'park'))
  if (job.blockedReason !== null) return SAME
  const blocked = { blockedReason: 'parked', reason: 'parked' }
  if (job.execution === null) return note(situation, 'park', blocked)
  const path = pathOf(lifecycle, job.state, 'release') as readonly string[]
  const execution = abortChange(situation, path, 'forced')
  const fields = { ...blocked, runAt: situation.context.now }
  return accept(situation, 'park', path, { ...fields, ...(execution && { execution }) })
}

/** Lets a parked or failed job run again, with fresh budgets; its attempts go on rising. */
export function decideRedrive(situation: Situation): Decision {
  const { lifecycle, job, context } = situation
  // Rule G6: after the commit only the outbox is reset, which the store does with this fact.
  if (isCommitted(job)) {
    return job.outcome === null
      ? note(situation, 'redrive', {})
      : reject(new Committed(job.id, 'redrive'))
  }
  if (job.blockedReason !== null) {
    const ready = job.state === lifecycle.ready
    // Parking spent no budget, so there is none to give back.
    return note(situation, 'redrive', {
      blockedReason: null,
      ...(ready && { runAt: context.now }),
    })
  }
  if (pathOf(lifecycle, job.state, 'redrive') === undefined) return offPath(situation, 'redrive')
  return follow(situation, 'redrive', { resets: true, runAt: context.now })
}

/** Gives a parked job up for good. */
export function decideDiscard(situation: Situation): Decision {
  return follow(situation, 'discard', { reason: 'discarded' })
}

/** Puts the job into a state that no edge leads to from here. */
export function decideForce(situation: Situation, command: Of<'force'>): Decision {
  return offTable(situation, 'force', command.to)
}

/** Records what the doctor mended; with a target it moves the job, under the rules of force. */
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
  // Where a state is entered through the held one alone, the force goes that way, too (rule G1).
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
    role === undefined ? `has no state ${to}` : `${trigger} never leads into a ${role} state`
  // Where the machine has such an edge, the two states alone would say that it has not.
  const isEdge = machine.byTarget.get(job.state)?.has(to) === true
  const instead = `In machine "${name}" ${what}; it may lead to ${allowed.join(', ')}.`
  const more = isEdge ? { why: what, instead } : { instead }
  return new InvalidTransition(name, job.state, to, allowed, `${trigger} to ${to}`, more)
}
