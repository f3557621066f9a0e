/**
 * How commands are answered: each is decided on the present state of a job that was read and locked
 * in this transaction, and what was decided becomes that state. All of it is written at once, at
 * the end: each row that changed, and every fact. A job of an earlier version is migrated first; if
 * the command is refused or changes nothing, the job stays what it was.
 */
import type { Command } from '../../core/job/commands.ts'
import { decide } from '../../core/job/decide.ts'
import { evolve } from '../../core/job/evolve.ts'
import { enteredAt } from '../../core/job/job.ts'
import { contextOf, ENGINE } from '../asker.ts'
import { followRoute } from '../machines.ts'
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
  const { lifecycle, route, retriesAhead } = read
  const context = contextOf(environment, asker, now, retriesAhead)
  const migrated = route && followRoute(route, read.job, contextOf(environment, ENGINE, now))
  if (migrated !== undefined && 'kind' in migrated) return migrated
  const decision = decide(lifecycle, migrated?.job ?? read.job, command, context)
  if (decision.kind === 'rejected') return decision
  if (decision.kind === 'same') return { kind: 'same', job: read.job }
  const { fact } = decision
  if (route && migrated) changes.migrate(read, route, migrated)
  changes.add(read, fact, payload)
  const since = enteredAt(read.job)
  read.job = evolve(read.job, fact)
  const hops = migrated && { migrated: migrated.facts }
  return { kind: 'done', job: read.job, fact, since, ...hops }
}
