/**
 * The commit boundary (R1). One transaction: the fence is checked, the function runs, the
 * effects go into the outbox, the result and the COMMITTED fact are recorded. Then it is true,
 * once.
 *
 * The write lock is held while the function runs, so its time is bounded: by five seconds, and by a
 * third of the lease. Past the bound everything is rolled back. The fence is checked again at the
 * end, by the time of the end.
 */

import { PawlError } from '../../core/errors.ts'
import type { Usage } from '../../core/job/commands.ts'
import { decide } from '../../core/job/decide.ts'
import { FACT_CODES } from '../../core/job/facts.ts'
import { contextOf, WORKER } from '../asker.ts'
import {
  boundOf,
  type CommitWork,
  commitCommand,
  committedCommand,
  runFunction,
} from '../commit-function.ts'
import type { CommitAnswer, Held } from '../store.ts'
import { Changes } from '../verbs/changes.ts'
import type { Read } from '../verbs/reading.ts'
import { writeChanges } from './apply.ts'
import { typed } from './busy.ts'
import type { Connection } from './connect.ts'
import { readHeld, type Shared } from './context.ts'
import { insertEffects } from './outbox.ts'
import { accessTo } from './transaction.ts'

const SELECT_RESULT = `SELECT payload FROM pawl_ledger
    WHERE job = ? AND kind = ${FACT_CODES.commit}`

/** Runs the function of a commit inside the caller's transaction. */
export async function commit(
  shared: Shared,
  connection: Connection,
  now: number,
  held: Held,
  work: CommitWork,
  usage: (() => Usage | undefined) | undefined,
): Promise<CommitAnswer> {
  const begun = typed(() => begin(shared, connection, now, held))
  if ('kind' in begun) return begun
  const { result, effects } = await runFunction(shared, boundOf(held), accessTo(connection), work)
  return typed(() => {
    const end = shared.clock.now()
    const committed = committedCommand(held, effects, usage)
    const changes = new Changes({ environment: shared.environment, now: end })
    const after = changes.answer(begun, committed, WORKER, result)
    // The lease ran out while the function ran: its writes must go, too.
    if (after.kind === 'rejected') throw after.error
    writeChanges(connection, changes)
    insertEffects(connection, end, begun, effects)
    return { kind: 'done', job: after.job, result }
  })
}

/** The job as it is, if its holder may commit it; else the answer. */
function begin(
  shared: Shared,
  connection: Connection,
  now: number,
  held: Held,
): Read | CommitAnswer {
  const read = readHeld(shared, connection, held)
  if (read instanceof PawlError) return { kind: 'rejected', error: read }
  const { job, lifecycle, ref } = read
  const context = contextOf(shared.environment, WORKER, now)
  const decision = decide(lifecycle, job, commitCommand(held), context)
  if (decision.kind === 'rejected') return decision
  if (decision.kind === 'same')
    return { kind: 'same', job, result: resultOf(connection, ref as number) }
  return read
}

function resultOf(connection: Connection, rid: number): string {
  return connection.get<{ payload: string | null }>(SELECT_RESULT, rid)?.payload ?? 'null'
}
