/**
 * The commit boundary (R1). One transaction: the fence is checked, the function runs, the
 * effects go into the outbox, the result and the COMMITTED fact are recorded. Then it is true,
 * once.
 *
 * The row of the job is locked while the function runs, so its time is bounded: by five seconds,
 * and by a third of the lease. Past the bound everything is rolled back. The fence is checked again
 * at the end, by the time of the end.
 *
 * If the answer to COMMIT is lost, the job itself is asked. Whoever gets its lock knows that the
 * transaction has ended, one way or the other; the function is never run a second time to find out.
 *
 * If the connection is lost while the function runs, the commit fails with `StoreUnavailable`,
 * whatever the function makes of it: the store has failed, not the function.
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
import { StoreUnavailable } from '../errors.ts'
import type { CommitAnswer, Held } from '../store.ts'
import { Changes } from '../verbs/changes.ts'
import { writeChanges } from './apply.ts'
import { endsConnection, Patience, toPawlError, untilDone } from './busy.ts'
import { answerMsOf, type Database, type OwnSession, statement } from './connect.ts'
import { lockHeld, type Shared } from './context.ts'
import { type JoinedLife, whileJoinable } from './join.ts'
import { insertEffects } from './outbox.ts'
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

/** Runs the function of a commit in a transaction, and answers what became of the job. */
export function commit(
  store: CommitStore,
  held: Held,
  work: CommitWork,
  usage: (() => Usage | undefined) | undefined,
): Promise<CommitAnswer> {
  return whileJoinable((life) => commitIn({ ...store, life }, held, work, usage))
}

async function commitIn(
  store: CommitStore & { readonly life: JoinedLife },
  held: Held,
  work: CommitWork,
  usage: (() => Usage | undefined) | undefined,
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
    commitOnce(store, session, held, boundMs, observed, usage, (error) => {
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
  usage: (() => Usage | undefined) | undefined,
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
  // The time of the function is its own, and so is the time of what comes after it.
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
  const committed = committedCommand(held, effects, usage)
  const after = changes.answer(read, committed, WORKER, result)
  // The lease ran out while the function ran: its writes must go, too.
  if (after.kind === 'rejected') throw after.error
  await insertEffects(session, now(), read.job, effects)
  await writeChanges(session, changes)
  return { kind: 'done', job: after.job, result }
}

/** What became of a commit whose end was not heard: its job knows. */
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

async function resultOf(session: OwnSession, jobId: string): Promise<string> {
  const [row] = await session.query<{ payload: string | null }>(SELECT_RESULT, [jobId])
  return row?.payload ?? 'null'
}
