/**
 * How a command is answered: decided on the row that was read, and written under its seq. A job of
 * an earlier version is migrated first, in the same transaction; if the command is refused or
 * changes nothing, the job stays what it was.
 */
import { TransitionRace } from '../../core/errors.ts'
import type { Command } from '../../core/job/commands.ts'
import { decide } from '../../core/job/decide.ts'
import { enteredAt } from '../../core/job/job.ts'
import { contextOf, ENGINE } from '../asker.ts'
import { followRoute } from '../machines.ts'
import type { Answer, Asker } from '../store.ts'
import { applyFact, applyMigration, type Pending } from './apply.ts'
import type { Connection } from './connect.ts'
import type { Read, Shared } from './context.ts'

/** Decides a command on a job that was read in this transaction, and writes what was decided. */
export function answer(
  shared: Shared,
  connection: Connection,
  now: number,
  { rid, job: found, lifecycle, route, retriesAhead }: Read,
  command: Command,
  asker: Asker,
  payload: string | null = null,
  pending?: Pending,
): Answer {
  const context = contextOf(shared.environment, asker, now, retriesAhead)
  const migrated = route && followRoute(route, found, contextOf(shared.environment, ENGINE, now))
  if (migrated !== undefined && 'kind' in migrated) return migrated
  const job = migrated?.job ?? found
  const decision = decide(lifecycle, job, command, context)
  if (decision.kind === 'rejected') return decision
  if (decision.kind === 'same') return { kind: 'same', job: found }
  if (route && migrated) applyMigration(connection, rid, route, found, migrated)
  const after = applyFact(connection, lifecycle, rid, job, decision.fact, payload, pending)
  // Inside one transaction nobody can have moved the row; if it happens all the same, say so.
  if (after === undefined) return { kind: 'rejected', error: new TransitionRace(job.id) }
  const { fact } = decision
  const hops = migrated && { migrated: migrated.facts }
  return { kind: 'done', job: after, fact, since: enteredAt(job), ...hops }
}
