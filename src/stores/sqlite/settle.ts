/**
 * Applies what attempts report. Each job is read, decided and written inside the write transaction,
 * so the decision is made on the present row; the fence in the command is what tells its holder
 * from one that is late.
 */

import { CommandInvalid, PawlError } from '../../core/errors.ts'
import { decide } from '../../core/job/decide.ts'
import { contextOf, WORKER } from '../asker.ts'
import { findPayloadFault } from '../requests.ts'
import type { Answer, Settlement } from '../store.ts'
import { Changes } from '../verbs/changes.ts'
import { mayRetry, type WaitingRetries } from '../waiting-retries.ts'
import { applySuccess, Pending, writeChanges } from './apply.ts'
import type { Connection } from './connect.ts'
import { readHeld, type Shared } from './context.ts'
import { hasStep } from './query.ts'
import { findWaitingRetries } from './retries.ts'

/** Applies every settlement; each stands alone. */
export function settle(
  shared: Shared,
  connection: Connection,
  now: number,
  settlements: readonly Settlement[],
): Answer[] {
  const pending = new Pending()
  const retries = settlements.some(({ command }) => mayRetry(command))
    ? findWaitingRetries(connection, now)
    : undefined
  const answers = settlements.map(
    (one) =>
      settleSuccess(shared, connection, now, one, pending) ??
      settleOne(shared, connection, now, one, pending, retries),
  )
  pending.write(connection)
  return answers
}

/**
 * The commonest case: a plain success of a job that has not changed since it was claimed. It is
 * decided on what its holder has, and the update proves that this is the present row, lease and
 * all. Whatever is not so is left to the general way, which reads the row.
 */
function settleSuccess(
  shared: Shared,
  connection: Connection,
  now: number,
  { held, command, payload }: Settlement,
  pending: Pending,
): Answer | undefined {
  const { ref, job } = held
  if (typeof ref !== 'number' || job.policy?.notify) return undefined
  const lifecycle = shared.machines.find(job.lifecycle, job.lifecycleVersion)
  if (command.kind !== 'commit' || command.effects || lifecycle === undefined) return undefined
  if (payloadFault(shared, payload) !== undefined) return undefined
  const decision = decide(lifecycle, job, command, contextOf(shared.environment, WORKER, now))
  if (decision.kind !== 'fact') return undefined
  const { fact } = decision
  const after = applySuccess(connection, ref, job, fact, payload ?? null, pending)
  return after && { kind: 'done', job: after, fact }
}

function settleOne(
  shared: Shared,
  connection: Connection,
  now: number,
  { held, command, payload }: Settlement,
  pending: Pending,
  retries: WaitingRetries | undefined,
): Answer {
  const found = readHeld(shared, connection, held)
  if (found instanceof PawlError) return { kind: 'rejected', error: found }
  const retriesAhead = mayRetry(command) ? retries?.next(found.job.queue) : undefined
  const read = retriesAhead === undefined ? found : { ...found, retriesAhead }
  const fault = payloadFault(shared, payload)
  if (fault !== undefined) return { kind: 'rejected', error: fault }
  if (command.kind === 'commit' && command.effects) {
    // Only the function of a commit can put them into the outbox, from which they are delivered.
    const error = new CommandInvalid('effects', 'must be declared through the tx of a commit')
    return { kind: 'rejected', error }
  }
  // What is pending is not in the ledger yet, where a step is looked for.
  if (command.kind === 'step') pending.write(connection)
  const known =
    command.kind === 'step' && hasStep(connection, read.ref as number, command.name, command.n)
  const asked = known ? { ...command, known } : command
  const changes = new Changes({ environment: shared.environment, now })
  const answered = changes.answer(read, asked, WORKER, payload)
  writeChanges(connection, changes, pending)
  return answered
}

function payloadFault({ payloadBounds }: Shared, payload: string | undefined) {
  return payload === undefined ? undefined : findPayloadFault('payload', payload, payloadBounds)
}
