/**
 * Functions of the user's on a connection of the store, inside its transaction.
 *
 * If the answer to COMMIT is lost, the database is asked by the number of the transaction what
 * became of it. The function is never run a second time.
 */
import { StoreUnavailable, TransactionTooSlow, TxBroken } from '../errors.ts'
import type { StoreTx } from '../store.ts'
import { BOUND_MS, runBounded, type TxAccess } from '../transaction-function.ts'
import { hasCommitted } from './apply.ts'
import { kindOf, sqlStateOf, toPawlError, untilDone } from './busy.ts'
import type { CommitStore } from './commit.ts'
import { type Database, type OwnSession, statement } from './connect.ts'
import { lendSession } from './join.ts'

/** No statement of ours is given less time than this, however short the lease. */
const STATEMENT_MIN_MS = 1000

/** Nothing if the transaction has written nothing. */
const SELECT_TX = statement(() => 'SELECT pg_current_xact_id_if_assigned()::text::bigint AS tx')

/** What came of a function, and the number of its transaction. */
interface Done<T> {
  readonly value: T
  readonly tx: number | null
}

/** Runs the function of a transaction; returns what it returned as `value`. */
export async function runTransaction<T>(
  { shared, database, timeoutMs }: Omit<CommitStore, 'now'>,
  work: (tx: StoreTx) => T | Promise<T>,
): Promise<Pick<Done<T>, 'value'>> {
  const { environment } = shared
  let ran = false
  let thrown: { readonly error: unknown } | undefined
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
    const value = await runBounded(environment, accessTo(session, database), bounded).catch(
      (error) => {
        thrown = { error }
        throw error
      },
    )
    done = { value, tx: await numberOf(session) }
  }
  const ended = await untilDone(environment, timeoutMs, async () => {
    try {
      await database.transaction(once, settingsOf(BOUND_MS))
      return undefined
    } catch (error) {
      // What failed before the function ran can be tried again; what failed after it cannot.
      if (!ran) throw error
      return { error }
    }
  })
  if (thrown !== undefined) throw thrown.error
  if (ended === undefined) return done as Done<T>
  const isLost = kindOf(ended.error) === 'lost'
  if (!isLost) throw toPawlError(ended.error)
  if (done === undefined || !(await isCommitted(done.tx))) {
    throw new StoreUnavailable(0, ended.error)
  }
  return done

  async function isCommitted(tx: number | null): Promise<boolean> {
    if (tx === null) return true
    return untilDone(environment, timeoutMs, () => hasCommitted(database, { tx }))
  }
}

/**
 * The number of the transaction. After a statement that failed, COMMIT would roll back without an
 * error; this query fails instead.
 */
async function numberOf(session: OwnSession): Promise<number | null> {
  try {
    const [row] = await session.query<{ tx: number | null }>(SELECT_TX)
    return row?.tx ?? null
  } catch (error) {
    throw sqlStateOf(error) === FAILED_TRANSACTION ? new TxBroken() : error
  }
}

const FAILED_TRANSACTION = '25P02'

/** Local to the transaction: the user's statements are planned as the user is used to. */
export function settingsOf(boundMs: number): string {
  const timeoutMs = Math.max(boundMs, STATEMENT_MIN_MS)
  return [
    `statement_timeout = ${timeoutMs}`,
    // A holder that falls silent must not keep the row locked for longer than it keeps its lease.
    `idle_in_transaction_session_timeout = ${timeoutMs}`,
    'plan_cache_mode TO DEFAULT',
    'enable_seqscan TO DEFAULT',
    'random_page_cost TO DEFAULT',
    'jit TO DEFAULT',
  ]
    .map((setting) => `SET LOCAL ${setting}`)
    .join('; ')
}

/** How a function gets into the transaction of a session. */
export function accessTo(session: OwnSession, database: Database): TxAccess {
  return {
    query: (sql, values = []) => runRaw(session, sql, values),
    raw: session.client,
    lend: (tx) => lendSession(tx, session, database),
  }
}

/** A statement of the user's; where the connection is gone, that is what the user is told. */
async function runRaw(
  session: OwnSession,
  sql: string,
  values: readonly unknown[],
): Promise<unknown[]> {
  try {
    return await session.raw(sql, values)
  } catch (error) {
    throw kindOf(error) === 'lost' ? new StoreUnavailable(0, error) : error
  }
}
