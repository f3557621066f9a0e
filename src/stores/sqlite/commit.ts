/**
 * The commit boundary (R1). In one transaction the fence is checked, the function runs, the effects
 * go into the outbox, and the result and the COMMITTED fact are recorded.
 *
 * The write lock is held while the function runs, so its time is bounded: by five seconds, and by a
 * third of the lease. If it takes longer, everything is rolled back. The fence is checked again at
 * the end, by the time of the end.
 */

import { PawlError } from '../../core/errors.ts'
import { decide } from '../../core/job/decide.ts'
import { FACT_CODES } from '../../core/job/facts.ts'
import { boundOf, commitCommand, committedCommand, runFunction } from '../commit-function.ts'
import { contextOf, WORKER, workerIn } from '../contract/requester.ts'
import type { Closing, CommitAnswer, CommitWork, Held } from '../contract/store.ts'
import { Changes } from '../verbs/changes.ts'
import type { Read } from '../verbs/reading.ts'
import { writeChanges } from './apply.ts'
import { typed } from './busy.ts'
import type { Connection } from './connect.ts'
import { readHeld, type Shared } from './context.ts'
import { writeProgress } from './heartbeat.ts'
import { insertEffects } from './statements/outbox.ts'
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
  closing: (() => Closing) | undefined,
): Promise<CommitAnswer> {
  const begun = typed(() => begin(shared, connection, now, held))
  if ('kind' in begun) return begun
  const { result, effects } = await runFunction(shared, boundOf(held), accessTo(connection), work)
  return typed(() => {
    const end = shared.clock.nowInside()
    const { usage, progress, trace } = closing?.() ?? {}
    const committed = committedCommand(held, effects, usage)
    const changes = new Changes({ environment: shared.environment, now: end })
    const after = changes.answer(begun, committed, workerIn(trace), result)
    // The lease ended while the function ran: its writes must be rolled back.
    if (after.kind === 'rejected') throw after.error
    if (progress !== undefined) writeProgress(connection, begun.ref as number, progress)
    writeChanges(connection, changes)
    insertEffects(connection, end, begun, effects)
    return { kind: 'done', job: after.job, result }
  })
}

/** The job, if its holder may commit it; else the answer. */
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

function resultOf(connection: Connection, rid: number): string | undefined {
  return connection.get<{ payload: string | null }>(SELECT_RESULT, rid)?.payload ?? undefined
}
