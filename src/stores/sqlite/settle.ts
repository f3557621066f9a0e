/**
 * Applies what attempts report. Each job is read, decided and written inside the write transaction,
 * so the decision is made on the present row. The fence in the command shows whether the reporter
 * still holds the job.
 *
 * `settlePlain` is a fast path: a plain success (`decideCommit` in
 * `src/core/job/decide-attempt.ts`, without effects, notice and waiters) and the result of a step
 * (`decideStep`) are decided on the job that their holder has, and the row is not read.
 * `test/contract/store/fast-paths.ts` compares their facts with those of the decider.
 */

import { CommandInvalid, PawlError } from '../../core/errors.ts'
import { decide } from '../../core/job/decide.ts'
import type { Job } from '../../core/job/job.ts'
import { LINKS } from '../../core/job/links.ts'
import { contextOf, workerIn } from '../contract/requester.ts'
import { findPayloadFault } from '../contract/requests.ts'
import type { Answer, Settlement } from '../contract/store.ts'
import { Changes } from '../verbs/changes.ts'
import { mayRetry, type WaitingRetries } from '../waiting-retries.ts'
import { applyStep, applySuccess, Pending, writeChanges } from './apply.ts'
import type { Connection } from './connect.ts'
import { readHeld, type Shared } from './context.ts'
import { writeProgress } from './heartbeat.ts'
import { hasStep } from './query.ts'
import { findWaitingRetries } from './statements/retries.ts'

/** Applies every settlement, each independently. */
export function settle(
  shared: Shared,
  connection: Connection,
  now: number,
  settlements: readonly Settlement[],
): Answer[] {
  return settleLists(shared, connection, now, [settlements])[0] as Answer[]
}

/** The same for several callers, whose facts are written together. */
export function settleLists(
  shared: Shared,
  connection: Connection,
  now: number,
  lists: readonly (readonly Settlement[])[],
): Answer[][] {
  const pending = new Pending()
  const retries = lists.some((list) => list.some(({ command }) => mayRetry(command)))
    ? findWaitingRetries(connection, now)
    : undefined
  const answers = lists.map((list) =>
    list.map(
      (one) =>
        settlePlain(shared, connection, now, one, pending) ??
        settleOne(shared, connection, now, one, pending, retries),
    ),
  )
  pending.write(connection, now)
  return answers
}

/**
 * Writes a plain success, or the result of a step, of a job that is as its holder knows it. The
 * update finds the row only in that case, including the lease. Returns `undefined` for every other
 * settlement; `settleOne` then reads the row.
 */
function settlePlain(
  shared: Shared,
  connection: Connection,
  now: number,
  { held, command, payload, progress, trace }: Settlement,
  pending: Pending,
): Answer | undefined {
  const { ref, job } = held
  if (typeof ref !== 'number' || progress !== undefined || !mayBePlain(job, command)) {
    return undefined
  }
  const lifecycle = shared.machines.find(job.lifecycle, job.lifecycleVersion)
  if (lifecycle === undefined || payloadFault(shared, payload) !== undefined) return undefined
  // A step of the same call is not in the ledger yet, but has changed the row: the update fails.
  const isKnown = command.kind === 'step' && hasStep(connection, ref, command.name, command.n)
  if (isKnown) return undefined
  const context = contextOf(shared.environment, workerIn(trace), now)
  const decision = decide(lifecycle, job, command, context)
  if (decision.kind !== 'fact') return undefined
  const { fact } = decision
  const apply = command.kind === 'step' ? applyStep : applySuccess
  const after = apply(connection, held, fact, payload ?? null, pending)
  return after && { kind: 'done', job: after, fact }
}

function mayBePlain({ policy, links }: Job, command: Settlement['command']): boolean {
  if (command.kind === 'step') return true
  if (command.kind !== 'commit' || command.effects || policy?.notify) return false
  // Otherwise the end of the job concerns others.
  return (links & LINKS.awaited) === 0
}

function settleOne(
  shared: Shared,
  connection: Connection,
  now: number,
  { held, command, payload, progress, trace }: Settlement,
  pending: Pending,
  retries: WaitingRetries | undefined,
): Answer {
  const found = readHeld(shared, connection, held)
  if (found instanceof PawlError) return { kind: 'rejected', error: found }
  const retriesAhead = mayRetry(command) ? retries?.next(found.job.queue) : undefined
  const read = retriesAhead === undefined ? found : { ...found, retriesAhead }
  const fault = payloadFault(shared, payload) ?? payloadFault(shared, progress)
  if (fault !== undefined) return { kind: 'rejected', error: fault }
  if (command.kind === 'commit' && command.effects) {
    // Only the function of a commit can put them into the outbox, from which they are delivered.
    const error = new CommandInvalid('effects', 'must be declared through the tx of a commit')
    return { kind: 'rejected', error }
  }
  // Steps are looked for in the ledger, so pending facts are written first.
  if (command.kind === 'step') pending.write(connection, now)
  const known =
    command.kind === 'step' && hasStep(connection, read.ref as number, command.name, command.n)
  const asked = known ? { ...command, known } : command
  const changes = new Changes({ environment: shared.environment, now })
  const answered = changes.answer(read, asked, workerIn(trace), payload)
  if (progress !== undefined && answered.kind === 'done') {
    writeProgress(connection, read.ref as number, progress)
  }
  writeChanges(connection, changes, pending)
  return answered
}

function payloadFault({ payloadBounds }: Shared, payload: string | undefined) {
  return payload === undefined ? undefined : findPayloadFault('payload', payload, payloadBounds)
}
