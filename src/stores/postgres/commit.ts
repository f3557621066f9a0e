/**
 * The commit boundary (R1). In one transaction the fence is checked, the function runs, the effects
 * go into the outbox, and the result and the COMMITTED fact are recorded.
 *
 * The row of the job is locked while the function runs, so its time is bounded: by five seconds,
 * and by a third of the lease. If it takes longer, everything is rolled back. The fence is checked
 * again at the end, by the time of the end.
 *
 * If the answer to COMMIT is lost, the row of the job shows the outcome: when its lock is free, the
 * transaction has ended. The function is never run a second time to find out.
 *
 * If the connection is lost while the function runs, the commit fails with `StoreUnavailable`, also
 * if the function catches the error: the store has failed, not the function.
 */

import { PawlError } from '../../core/errors.ts'
import { decide } from '../../core/job/decide.ts'
import { FACT_CODES } from '../../core/job/facts.ts'
import { boundOf, commitCommand, committedCommand, runFunction } from '../commit-function.ts'
import { contextOf, WORKER, workerIn } from '../contract/requester.ts'
import type { Closing, CommitAnswer, CommitWork, Held } from '../contract/store.ts'
import { StoreUnavailable } from '../errors.ts'
import { Changes } from '../verbs/changes.ts'
import { writeChanges } from './apply.ts'
import { endsConnection, Patience, toPawlError, untilDone } from './busy.ts'
import { answerMsOf, type Database, type OwnSession, statement } from './connect.ts'
import { lockHeld, type Shared } from './context.ts'
import { writeProgress } from './heartbeat.ts'
import { type JoinedLife, whileJoinable } from './join.ts'
import { insertEffects } from './statements/outbox.ts'
import { accessTo, answerOf, lostInside, settingsOf } from './transaction.ts'

const SELECT_RESULT = statement(
  (s) => `SELECT payload FROM ${s}.ledger WHERE job = $1 AND kind = ${FACT_CODES.commit}`,
)

/** What a commit needs of its store. */
export interface CommitStore {
  readonly shared: Shared
  readonly database: Database
  readonly timeoutMs: number
  readonly now: () => number
}

/** Runs the function of a commit in a transaction; returns the outcome of the job. */
export function commit(
  store: CommitStore,
  held: Held,
  work: CommitWork,
  closing: (() => Closing) | undefined,
): Promise<CommitAnswer> {
  return whileJoinable((life) => commitIn({ ...store, life }, held, work, closing))
}

async function commitIn(
  store: CommitStore & { readonly life: JoinedLife },
  held: Held,
  work: CommitWork,
  closing: (() => Closing) | undefined,
): Promise<CommitAnswer> {
  const { shared, database, timeoutMs } = store
  let ran = false
  let thrown: Thrown | undefined
  const observed: CommitWork = async (tx) => {
    ran = true
    return work(tx)
  }
  const boundMs = boundOf(held)
  const once = (session: OwnSession) =>
    commitOnce(store, session, held, boundMs, observed, closing, (error) => {
      thrown = { error, isOutage: session.isBroken }
    })
  const patience = new Patience(shared.environment, timeoutMs)
  const outcome = await untilDone(patience, async () => {
    try {
      return await database.transaction(once, patience, settingsOf(boundMs))
    } catch (error) {
      // What failed before the function ran can be tried again; what failed after it cannot.
      if (!ran) throw error
      return { ended: error }
    }
  })
  if (!('ended' in outcome)) return outcome
  if (thrown?.isOutage) throw lostInside(thrown.error)
  if (thrown !== undefined) throw thrown.error
  const { ended } = outcome
  if (!endsConnection(ended)) throw toPawlError(ended)
  return resolve(store, held, ended)
}

/** What the function of a commit threw, and whether its connection was lost by then. */
interface Thrown {
  readonly error: unknown
  readonly isOutage: boolean
}

async function commitOnce(
  { shared, database, now, timeoutMs, life }: CommitStore & { readonly life: JoinedLife },
  session: OwnSession,
  held: Held,
  boundMs: number,
  work: CommitWork,
  closing: (() => Closing) | undefined,
  onThrow: (error: unknown) => void,
): Promise<CommitAnswer> {
  const [read] = await lockHeld(shared, session, [held])
  if (read === undefined || read instanceof PawlError) {
    return { kind: 'rejected', error: read as PawlError }
  }
  const start = now()
  const command = commitCommand(held)
  const { environment } = shared
  const before = decide(read.lifecycle, read.job, command, contextOf(environment, WORKER, start))
  if (before.kind === 'rejected') return before
  if (before.kind === 'same') {
    return { kind: 'same', job: read.job, result: await resultOf(session, read.job.id) }
  }
  // The function has a time of its own, and so do the statements after it.
  session.allow(answerOf(boundMs))
  const ran = await runFunction(shared, boundMs, accessTo(session, database, life), work).catch(
    (error: unknown) => {
      onThrow(error)
      throw error
    },
  )
  session.allow(answerMsOf(timeoutMs))
  const { result, effects } = ran
  const changes = new Changes({ environment, now: now() })
  const { usage, progress, trace } = closing?.() ?? {}
  const committed = committedCommand(held, effects, usage)
  const after = changes.answer(read, committed, workerIn(trace), result)
  // The lease ended while the function ran: its writes must be rolled back.
  if (after.kind === 'rejected') throw after.error
  if (progress !== undefined) await writeProgress(session, [{ id: read.job.id, progress }])
  await insertEffects(session, now(), read.job, effects)
  await writeChanges(session, changes)
  return { kind: 'done', job: after.job, result }
}

/** Reads the outcome of a commit whose answer was lost from its job. */
async function resolve(
  { shared, database, timeoutMs, now }: CommitStore,
  held: Held,
  cause: unknown,
): Promise<CommitAnswer> {
  const patience = new Patience(shared.environment, timeoutMs)
  const ask = async (session: OwnSession): Promise<CommitAnswer | undefined> => {
    const [read] = await lockHeld(shared, session, [held])
    if (read === undefined || read instanceof PawlError) return undefined
    const { job, lifecycle } = read
    const context = contextOf(shared.environment, WORKER, now())
    if (decide(lifecycle, job, commitCommand(held), context).kind !== 'same') return undefined
    return { kind: 'done', job, result: await resultOf(session, job.id) }
  }
  const found = await untilDone(patience, () => database.transaction(ask, patience), {
    isUnsure: () => true,
  })
  if (found === undefined) throw new StoreUnavailable(0, cause, 'none')
  return found
}

async function resultOf(session: OwnSession, jobId: string): Promise<string | undefined> {
  const [row] = await session.query<{ payload: string | null }>(SELECT_RESULT, [jobId])
  return row?.payload ?? undefined
}
