/**
 * The user's own transaction. A handle is taken for what it can do, not for what it is: anything
 * whose `query(text, values)` answers with `{ rows }`, as a client of `pg` does. Other libraries
 * need an adapter of a line or two (see the guide). It must be open on the same database, and
 * inside a transaction, because only then do the user's writes and the new jobs stand or fall
 * together.
 *
 * Everything is done behind a savepoint: outside of a transaction there is none to be had, and what
 * fails here leaves the user's transaction as it was.
 */
import { TxEnded, TxInvalid } from '../errors.ts'
import { codeOf } from '../outage.ts'
import type { Value } from '../rows.ts'
import { toPawlError } from './busy.ts'
import {
  type Database,
  type OwnSession,
  type Session,
  type Statement,
  statement,
} from './connect.ts'

/** What a transaction of the user's must be able to do. */
export interface PostgresTx {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>
}

/** The session of each tx of ours; nothing once its function has ended. */
const lent = new WeakMap<object, { readonly session: OwnSession; readonly from: Database } | null>()

/** Lets the tx of a commit or transaction be joined, until the returned function is called. */
export function lendSession(tx: object, session: OwnSession, from: Database): () => void {
  lent.set(tx, { session, from })
  return () => void lent.set(tx, null)
}

const SELECT_STORE = statement((s) => `SELECT id FROM ${s}.store`)

/** Which store a schema holds; a random number that its first migration gave it. */
export async function storeIdOf(session: Session): Promise<string> {
  const [row] = await session.query<{ id: string }>(SELECT_STORE)
  return row?.id ?? ''
}

/** Does work inside the user's transaction, or inside one of ours. */
export async function insideTransaction<T>(
  tx: unknown,
  database: Database,
  storeId: string,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const own = typeof tx === 'object' && tx !== null ? sessionOf(tx, database) : undefined
  if (own !== undefined) {
    return inTurn(own, () =>
      behindSavepoint(
        (text) => own.run(text),
        () => work(own),
      ),
    )
  }
  if (!isTransaction(tx)) throw new TxInvalid('it has no query(text, values)')
  const session = new JoinedSession(tx, database.schema)
  const joined = async () => {
    if ((await storeIdAt(session)) === storeId) return work(session)
    throw new TxInvalid('it is open on another database')
  }
  return inTurn(tx, () => behindSavepoint((text) => tx.query(text), joined))
}

/** The session behind a tx of ours; nothing if the user has opened it. */
function sessionOf(tx: object, database: Database): OwnSession | undefined {
  const found = lent.get(tx)
  if (found === null) throw new TxEnded()
  if (found === undefined || found.from === database) return found?.session
  throw new TxInvalid('it belongs to another store')
}

/** What each transaction was asked for last. */
const last = new WeakMap<object, Promise<unknown>>()

/** One after the other: what fails would otherwise undo what another does at the same time. */
function inTurn<T>(tx: object, work: () => Promise<T>): Promise<T> {
  const before = last.get(tx) ?? Promise.resolve()
  const done = before.then(work, work)
  last.set(tx, done)
  return done
}

async function behindSavepoint<T>(
  run: (text: string) => Promise<unknown>,
  work: () => Promise<T>,
): Promise<T> {
  await setSavepoint(run)
  try {
    const result = await work()
    await run('RELEASE SAVEPOINT pawl')
    return result
  } catch (error) {
    // Where not even this is possible the connection has gone, and the transaction with it.
    await run('ROLLBACK TO SAVEPOINT pawl').catch(() => {})
    throw toPawlError(error)
  }
}

function isTransaction(tx: unknown): tx is PostgresTx {
  return typeof (tx as Partial<PostgresTx> | null | undefined)?.query === 'function'
}

const NO_TRANSACTION = '25P01'
const FAILED_TRANSACTION = '25P02'

async function setSavepoint(run: (text: string) => Promise<unknown>): Promise<void> {
  try {
    await run('SAVEPOINT pawl')
  } catch (error) {
    const code = codeOf(error)
    if (code === NO_TRANSACTION) throw new TxInvalid('it is not inside a transaction')
    if (code === FAILED_TRANSACTION) throw new TxInvalid('it has failed already')
    throw toPawlError(error)
  }
}

const UNDEFINED_TABLE = '42P01'

async function storeIdAt(session: Session): Promise<string | undefined> {
  try {
    return await storeIdOf(session)
  } catch (error) {
    if (codeOf(error) === UNDEFINED_TABLE) return undefined
    throw error
  }
}

/** Columns with whole numbers, which drivers may hand over as texts. */
const NUMBERS = new Set(
  `machine timeout_ms deadline_at seq attempt failures crashes releases priority run_at
  created_at started_at ended_at updated_at stalled lease_until cancel_asked_at at`.split(/\s+/),
)

/** A transaction of the user's while a verb uses it. */
class JoinedSession implements Session {
  readonly #tx: PostgresTx
  readonly #schema: string

  constructor(tx: PostgresTx, schema: string) {
    this.#tx = tx
    this.#schema = schema
  }

  async query<Row>(made: Statement, values: readonly Value[] = []): Promise<Row[]> {
    const { rows } = await this.#tx.query(made(this.#schema).text, [...values])
    return rows.map((row) => {
      const entries = Object.entries(row as object).map(([name, value]) => [
        name,
        NUMBERS.has(name) && value !== null ? Number(value) : value,
      ])
      return Object.fromEntries(entries) as Row
    })
  }
}
