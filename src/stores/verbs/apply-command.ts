/** Applies a command to jobs by their ids, for clients and operators. */
import { DependencyOpen, JobNotFound, TransitionRace } from '../../core/errors.ts'
import type { Command } from '../../core/job/commands.ts'
import type { Job } from '../../core/job/job.ts'
import { isWaiter, LINKS } from '../../core/job/links.ts'
import type { Answer, Requester } from '../contract/store.ts'
import { EffectsOpen } from '../errors.ts'
import type { LookRow } from '../link-rows.ts'
import { Changes } from './changes.ts'
import type { Locked, Tx, Verb } from './operations.ts'
import type { Read } from './reading.ts'
import { isOpenIn } from './wake.ts'

/** Locks the jobs, decides and writes. A job that is refused does not affect the others. */
export function* applyCommand(
  tx: Tx,
  ids: readonly string[],
  command: Command,
  requester: Requester,
  seqs?: readonly number[],
): Verb<Answer[]> {
  const locked = yield* tx.lockJobs(ids)
  const found = [...locked.reads.values()]
  const open = command.kind === 'done' ? yield* tx.openEffects(found) : undefined
  const finished = new Set(
    command.kind === 'step' ? yield* tx.finishedSteps(found, command.name, command.n) : [],
  )
  const looks = yield* lookAtWaiters(tx, found, command)
  const changes = new Changes(tx)
  const redriven: Read[] = []
  const answers = ids.map((id, i): Answer => {
    const read = present(locked, id, seqs?.[i])
    if ('kind' in read) return read
    if (open?.has(id)) return { kind: 'rejected', error: new EffectsOpen(id) }
    const asked: Command =
      command.kind === 'step' && finished.has(id) ? { ...command, known: true } : command
    const answered = changes.answer(read, withLook(asked, looks?.get(id)), requester)
    if (answered.kind === 'rejected') return named(answered, read, command, looks?.get(id))
    if (answered.kind !== 'done') return answered
    if (command.kind === 'step') finished.add(id)
    if (command.kind === 'redrive') redriven.push(read)
    return answered
  })
  yield* tx.resetEffects(redriven)
  yield* tx.write(changes)
  return answers
}

/** What a waiter waits for, and whether members can still be added to its batch. */
type WaiterLook = LookRow & { readonly isOpenBatch: boolean; readonly wantsFailure: boolean }

/** The commands that look at the links of waiters: all others mean the same for them. */
const LOOKING: readonly Command['kind'][] = ['submit', 'schedule', 'reschedule', 'redrive']

function* lookAtWaiters(
  tx: Tx,
  reads: readonly Read[],
  { kind }: Command,
): Verb<ReadonlyMap<string, WaiterLook> | undefined> {
  const waiters = LOOKING.includes(kind) ? reads.filter(({ job }) => isWaiter(job)) : []
  if (waiters.length === 0) return undefined
  const rows = yield* tx.lookAtLinks(waiters.map(({ job }) => job.id))
  const flows = waiters.flatMap(({ job }) => job.flow ?? [])
  // Without a lock: until the batch is closed, nothing but its closing matters to the callback.
  const open = new Set(
    (yield* tx.flowRows([...new Set(flows)])).flatMap((row) => (row.open === 1 ? row.id : [])),
  )
  const jobs = new Map(waiters.map(({ job }) => [job.id, job]))
  return new Map(
    rows.map((row) => {
      const job = jobs.get(row.waiter) as Job
      const wantsFailure = (job.links & LINKS.failure) !== 0
      return [row.waiter, { ...row, isOpenBatch: isOpenIn(open, job), wantsFailure }]
    }),
  )
}

/** A redrive of a waiter applies if everything that it waits for came out as needed. */
function withLook(command: Command, look: WaiterLook | undefined): Command {
  if (command.kind !== 'redrive' || look === undefined) return command
  const { open, failed, hit, isOpenBatch, wantsFailure } = look
  const isOver = open === null && failed === null && !isOpenBatch
  if (!wantsFailure) return { ...command, arrived: isOver }
  return hit === null ? { ...command, missed: isOver } : { ...command, arrived: true }
}

/** The rejection, with the job that the waiter waits for. */
function named(
  answer: Extract<Answer, { kind: 'rejected' }>,
  { job }: Read,
  { kind }: Command,
  look: WaiterLook | undefined,
): Answer {
  if (!(answer.error instanceof DependencyOpen)) return answer
  const dependency = look?.failed ?? look?.open ?? undefined
  return { kind: 'rejected', error: new DependencyOpen(job.id, kind, dependency) }
}

/** Asks the holder of a running job to cancel it; a job without a holder is cancelled at once. */
export function* cancel(
  tx: Tx,
  ids: readonly string[],
  requester: Requester,
  seqs?: readonly number[],
): Verb<Answer[]> {
  const locked = yield* tx.lockJobs(ids)
  const found = ids.map((id, i) => present(locked, id, seqs?.[i]))
  const asked = yield* tx.askHolders(found.filter((one): one is Read => !('kind' in one)))
  const changes = new Changes(tx)
  const answers = ids.map((id, i): Answer => {
    // Again, because an entry before it may have moved the job.
    const read = present(locked, id, seqs?.[i])
    if ('kind' in read) return read
    if (asked.has(id)) return { kind: 'asked', job: read.job }
    return changes.answer(read, { kind: 'cancel' }, requester)
  })
  yield* tx.write(changes)
  return answers
}

/** The job as it is now, or the answer if there is none or it is not as its requester saw it. */
function present(
  { reads, unknown }: Locked,
  id: string,
  seq: number | undefined,
): Read | Extract<Answer, { kind: 'rejected' }> {
  const read = reads.get(id)
  if (read === undefined) return { kind: 'rejected', error: unknown.get(id) ?? new JobNotFound(id) }
  return hasMoved(read.job, seq) ? { kind: 'rejected', error: new TransitionRace(id) } : read
}

/** Whether a job is no longer as its requester saw it; false if the requester does not say. */
function hasMoved(job: Job, seq: number | undefined): boolean {
  return seq !== undefined && job.seq !== seq
}
