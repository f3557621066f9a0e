/**
 * Functions of the user on a connection of the store, inside its transaction.
 *
 * If the answer to COMMIT is lost, the database is asked for the outcome by the number of the
 * transaction. The function is never run a second time.
 */
import type { Environment } from '../../environment/system.ts'
import type { StoreTx } from '../contract/store.ts'
import { StoreUnavailable, TransactionTooSlow, TxBroken } from '../errors.ts'
import { codeOf } from '../outage.ts'
import { BOUND_MS, runBounded, type TxAccess } from '../transaction-function.ts'
import { hasCommitted } from './apply.ts'
import { endsConnection, Patience, toPawlError, untilDone } from './busy.ts'
import type { CommitStore } from './commit.ts'
import { answerMsOf, type Database, type OwnSession, statement } from './connect.ts'
import { type JoinedLife, lendSession, whileJoinable } from './join.ts'

/** The least time of a statement of the store, however short the lease. */
const STATEMENT_MIN_MS = 1000

/** How much longer than the server the driver waits for a statement of the function. */
const ANSWER_EXTRA_MS = 500

/** Null if the transaction has written nothing. */
const SELECT_TX = statement(
  () => `SELECT pg_current_xact_id_if_assigned()::text::bigint AS tx,
    pg_postmaster_start_time()::text AS server`,
)
const SELECT_SERVER = statement(() => 'SELECT pg_postmaster_start_time()::text AS server')

/**
 * Identifies a transaction: its number, and when its server was started. Another server, or this
 * one after a crash, may use the number for another transaction.
 */
interface Numbered {
  readonly tx: number | null
  readonly server: string
}

/** The result of a function, and its transaction. */
interface Done<T> extends Numbered {
  readonly value: T
}

/** Runs the function of a transaction; returns what it returned as `value`. */
export function runTransaction<T>(
  store: Omit<CommitStore, 'now'>,
  work: (tx: StoreTx) => T | Promise<T>,
): Promise<Pick<Done<T>, 'value'>> {
  return whileJoinable((life) => runIn(store, work, life))
}

async function runIn<T>(
  { shared, database, timeoutMs }: Omit<CommitStore, 'now'>,
  work: (tx: StoreTx) => T | Promise<T>,
  life: JoinedLife,
): Promise<Pick<Done<T>, 'value'>> {
  const { environment } = shared
  let ran = false
  let thrown: { readonly error: unknown; readonly isOutage: boolean } | undefined
  let done: Done<T> | undefined
  const bounded = {
    boundMs: BOUND_MS,
    tooSlow: () => new TransactionTooSlow(BOUND_MS),
    extend: (tx: StoreTx) => tx,
    work(tx: StoreTx) {
      ran = true
      return work(tx)
    },
  }
  const once = async (session: OwnSession) => {
    session.allow(answerOf(BOUND_MS))
    const value = await runBounded(environment, accessTo(session, database, life), bounded).catch(
      (error) => {
        thrown = { error, isOutage: session.isBroken }
        throw error
      },
    )
    session.allow(answerMsOf(timeoutMs))
    done = { value, ...(await numberOf(session)) }
  }
  const patience = new Patience(environment, timeoutMs)
  const ended = await untilDone(patience, async () => {
    try {
      await database.transaction(once, patience, settingsOf(BOUND_MS))
      return undefined
    } catch (error) {
      // What failed before the function ran can be tried again; what failed after it cannot.
      if (!ran) throw error
      return { error }
    }
  })
  if (thrown?.isOutage) throw lostInside(thrown.error)
  if (thrown !== undefined) throw thrown.error
  const known = done as Done<T> | undefined
  if (ended === undefined) return { value: (known as Done<T>).value }
  if (!endsConnection(ended.error)) throw toPawlError(ended.error)
  if (known === undefined || !(await isCommitted(database, environment, timeoutMs, known))) {
    throw new StoreUnavailable(0, ended.error, 'none')
  }
  return { value: known.value }
}

/** Whether a transaction has committed whose answer was lost. */
async function isCommitted(
  database: Database,
  environment: Environment,
  timeoutMs: number,
  { tx, server }: Numbered,
): Promise<boolean> {
  if (tx === null) return true
  const patience = new Patience(environment, timeoutMs)
  const ask = async () => {
    const [now] = await database.atOnce(
      (session) => session.query<{ server: string }>(SELECT_SERVER),
      patience,
    )
    if (now?.server !== server) {
      throw new Error('the server was started again, or is another one')
    }
    return hasCommitted(database, { tx }, patience)
  }
  return untilDone(patience, ask, { isUnsure: () => true })
}

/**
 * The connection was lost while a function of the user had it, also if the function caught the
 * error.
 */
export function lostInside(error: unknown): StoreUnavailable {
  return new StoreUnavailable(0, error instanceof StoreUnavailable ? error.cause : error, 'none')
}

/** How long an answer is waited for while a function runs that may take so long. */
export function answerOf(boundMs: number): number {
  return Math.max(boundMs, STATEMENT_MIN_MS) + ANSWER_EXTRA_MS
}

/**
 * The number of the transaction. After a statement that failed, COMMIT would roll back without an
 * error; this query fails instead.
 */
async function numberOf(session: OwnSession): Promise<Numbered> {
  try {
    const [row] = await session.query<Numbered>(SELECT_TX)
    return row as Numbered
  } catch (error) {
    throw codeOf(error) === FAILED_TRANSACTION ? new TxBroken() : error
  }
}

const FAILED_TRANSACTION = '25P02'

/** Local to the transaction: statements of the user keep the settings of the user. */
export function settingsOf(boundMs: number): string {
  const timeoutMs = Math.max(boundMs, STATEMENT_MIN_MS)
  return [
    `statement_timeout = ${timeoutMs}`,
    // A holder that falls silent must not keep the row locked for longer than it keeps its lease,
    // of which the bound is at most a third. Twice the bound, because a process whose timer is late
    // must still get its own error (E_COMMIT_TOO_SLOW), not that of a connection that was ended.
    `idle_in_transaction_session_timeout = ${2 * timeoutMs}`,
    'plan_cache_mode TO DEFAULT',
    'enable_seqscan TO DEFAULT',
    'random_page_cost TO DEFAULT',
    'jit TO DEFAULT',
  ]
    .map((setting) => `SET LOCAL ${setting}`)
    .join('; ')
}

/** How a function reaches the transaction of a session. */
export function accessTo(session: OwnSession, database: Database, life: JoinedLife): TxAccess {
  return {
    dialect: 'postgres',
    run: ({ text, values }) => runRaw(session, text, values),
    raw: session.client,
    lend: (tx) => lendSession(tx, session, database, life),
  }
}

/** Runs a statement of the user; if the connection is gone, that is the error. */
async function runRaw(
  session: OwnSession,
  sql: string,
  values: readonly unknown[],
): Promise<unknown[]> {
  try {
    return await session.raw(sql, values)
  } catch (error) {
    throw endsConnection(error) ? new StoreUnavailable(0, error, 'none') : error
  }
}
