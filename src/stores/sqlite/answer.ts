/** How a command is answered: decided on the row that was read, and written under its seq. */

import { TransitionRace } from '../../core/errors.ts'
import type { Command } from '../../core/job/commands.ts'
import { decide } from '../../core/job/decide.ts'
import { contextOf } from '../asker.ts'
import type { Answer, Asker } from '../store.ts'
import { applyFact, type Pending } from './apply.ts'
import type { Connection } from './connect.ts'
import type { Read, Shared } from './context.ts'

/** Decides a command on a job that was read in this transaction, and writes what was decided. */
export function answer(
  shared: Shared,
  connection: Connection,
  now: number,
  { rid, job, lifecycle }: Read,
  command: Command,
  asker: Asker,
  payload: string | null = null,
  pending?: Pending,
): Answer {
  const decision = decide(lifecycle, job, command, contextOf(shared.environment, asker, now))
  if (decision.kind === 'rejected') return decision
  if (decision.kind === 'same') return { kind: 'same', job }
  const after = applyFact(connection, lifecycle, rid, job, decision.fact, payload, pending)
  // Inside one transaction nobody can have moved the row; if it happens all the same, say so.
  if (after === undefined) return { kind: 'rejected', error: new TransitionRace(job.id) }
  return { kind: 'done', job: after, fact: decision.fact }
}
