/**
 * Applies what attempts report. Each job is read, decided and written inside the write transaction,
 * so the decision is made on the present row; the fence in the command is what tells its holder
 * from one that is late.
 */
import { CommandInvalid, JobNotFound, LifecycleUnknown } from '../../core/errors.ts'
import { decide } from '../../core/job/decide.ts'
import { findPayloadFault } from '../requests.ts'
import type { JobRow } from '../rows.ts'
import type { Answer, Held, Settlement } from '../store.ts'
import { answer } from './answer.ts'
import { applySuccess, Pending } from './apply.ts'
import type { Connection } from './connect.ts'
import { contextOf, type Read, type Shared, toRead } from './context.ts'
import { hasStep } from './query.ts'

const SELECT_ROW = 'SELECT * FROM pawl_jobs WHERE rid = ?'

/** What of a row can differ from what its holder was given, as long as no fact was added. */
const SELECT_VOLATILE = `
  SELECT id, seq, attempt, claim, machine, lease_until FROM pawl_jobs WHERE rid = ?`

/** Applies every settlement; each stands alone. */
export function settle(
  shared: Shared,
  connection: Connection,
  now: number,
  settlements: readonly Settlement[],
): Answer[] {
  const pending = new Pending()
  const answers = settlements.map(
    (one) =>
      settleSuccess(shared, connection, now, one, pending) ??
      settleOne(shared, connection, now, one, pending),
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
  const lifecycle = shared.machines.find(job.lifecycle, job.lifecycleVersion)
  if (command.kind !== 'commit' || command.effects || lifecycle === undefined) return undefined
  if (payloadFault(shared, payload) !== undefined) return undefined
  const decision = decide(lifecycle, job, command, contextOf(shared, WORKER, now))
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
): Answer {
  const read = readHeld(shared, connection, held)
  if (read === 'missing') return { kind: 'rejected', error: new JobNotFound(held.job.id) }
  if (read === undefined) {
    const { lifecycle, lifecycleVersion } = held.job
    return { kind: 'rejected', error: new LifecycleUnknown(lifecycle, lifecycleVersion) }
  }
  const fault = payloadFault(shared, payload)
  if (fault !== undefined) return { kind: 'rejected', error: fault }
  if (command.kind === 'commit' && command.effects) {
    // Only the function of a commit can put them into the outbox, from which they are delivered.
    const error = new CommandInvalid('effects', 'must be declared through the tx of a commit')
    return { kind: 'rejected', error }
  }
  // What is pending is not in the ledger yet, where a step is looked for.
  if (command.kind === 'step') pending.write(connection)
  const known = command.kind === 'step' && hasStep(connection, read.rid, command.name, command.n)
  const asked = known ? { ...command, known } : command
  return answer(shared, connection, now, read, asked, WORKER, payload, pending)
}

/**
 * The job as it is now. Where no fact was added since it was claimed, its holder has it already,
 * but for the lease, which heartbeats move: then the rest of the row need not be read again.
 */
function readHeld(
  shared: Shared,
  connection: Connection,
  { ref, job }: Held,
): Read | 'missing' | undefined {
  type Volatile = Pick<JobRow, 'id' | 'seq' | 'attempt' | 'claim' | 'machine' | 'lease_until'>
  const row = connection.get<Volatile>(SELECT_VOLATILE, ref)
  // All jobs of one claim have the same fence, so a handle must also belong to its job.
  if (row === undefined || row.id !== job.id) return 'missing'
  const lifecycle = shared.machines.byId.get(row.machine)
  const { execution } = job
  const same = row.seq === job.seq && row.attempt === job.attempt && row.claim === execution?.claim
  if (!same || execution === null || lifecycle === undefined) {
    return toRead(shared, connection.get<JobRow>(SELECT_ROW, ref) as JobRow)
  }
  if (row.lease_until === execution.leaseUntil) return { rid: ref, job, lifecycle }
  const leaseUntil = row.lease_until ?? 0
  return { rid: ref, job: { ...job, execution: { ...execution, leaseUntil } }, lifecycle }
}

function payloadFault({ payloadBytesMax }: Shared, payload: string | undefined) {
  return payload === undefined ? undefined : findPayloadFault('payload', payload, payloadBytesMax)
}

const WORKER = { actor: 'worker' } as const
