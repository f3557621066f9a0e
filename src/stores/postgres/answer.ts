/**
 * How commands are answered: each is decided on the present state of a job that was read and locked
 * in this transaction, and what was decided becomes that state. All of it is written at once, at
 * the end: each row that changed, and every fact.
 */
import type { Command } from '../../core/job/commands.ts'
import { decide } from '../../core/job/decide.ts'
import { evolve } from '../../core/job/evolve.ts'
import { contextOf } from '../asker.ts'
import type { Answer, Asker } from '../store.ts'
import type { Changes } from './apply.ts'
import type { Read, Shared } from './context.ts'

/** Decides a command on a job that was locked in this transaction, and notes what was decided. */
export function answer(
  { environment }: Shared,
  changes: Changes,
  now: number,
  read: Read,
  command: Command,
  asker: Asker,
  payload: string | null = null,
): Answer {
  const { job, lifecycle } = read
  const decision = decide(lifecycle, job, command, contextOf(environment, asker, now))
  if (decision.kind === 'rejected') return decision
  if (decision.kind === 'same') return { kind: 'same', job }
  const { fact } = decision
  changes.add(read, fact, payload)
  read.job = evolve(job, fact)
  return { kind: 'done', job: read.job, fact }
}
