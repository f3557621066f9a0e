/**
 * The user's own transaction. A handle is used by its methods, whatever its type: anything whose
 * `query(text, values)` returns `{ rows }`, as a client of `pg` does. Other libraries need an
 * adapter of a line or two (see the guide). It must be open on the same database, and inside a
 * transaction, because only then are the user's writes and the new jobs committed or rolled back
 * together.
 *
 * Everything is done after a savepoint: outside of a transaction it fails, and an error here leaves
 * the user's transaction as it was.
 */
import { TxEnded, TxInvalid } from '../errors.ts'
import { foreignTx } from '../foreign-tx.ts'
import { codeOf } from '../outage.ts'
import type { Value } from '../rows.ts'
import type { Loan } from '../transaction-function.ts'
import { toPawlError } from './busy.ts'
import {
  type Database,
  type OwnSession,
  type Session,
  type Statement,
  statement,
} from './connect.ts'

/** The methods that a transaction of the user must have. */
export interface PostgresTx {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>
}

/** What is known of a transaction of the store, for as long as it may be asked for. */
export interface JoinedLife {
  /** Whether it has committed or rolled back, as far as this process can know. */
  isOver: boolean
}

interface Lent {
  readonly session: OwnSession
  readonly from: Database
  readonly life: JoinedLife
}

/** The session of each tx of ours; absent when its function has ended. */
const lent = new WeakMap<object, Lent | null>()

/** Sessions whose transaction takes no further statements of jobs. */
const cut = new WeakSet<object>()

/** Runs a verb with a transaction of ours, which is over when the verb has its answer. */
export async function whileJoinable<T>(verb: (life: JoinedLife) => Promise<T>): Promise<T> {
  const life = { isOver: false }
  try {
    return await verb(life)
  } finally {
    life.isOver = true
  }
}

/** Lets the tx of a commit or transaction be joined. */
export function lendSession(
  tx: object,
  session: OwnSession,
  from: Database,
  life: JoinedLife,
): Loan {
  lent.set(tx, { session, from, life })
  return {
    end: () => void lent.set(tx, null),
    idle: async () => last.get(session)?.catch(() => {}),
    cut: () => void cut.add(session),
  }
}

const SELECT_STORE = statement((s) => `SELECT id FROM ${s}.store`)

/** The id of the store in a schema; a random number that its first migration wrote. */
export async function storeIdOf(session: Session): Promise<string> {
  const [row] = await session.query<{ id: string }>(SELECT_STORE)
  return row?.id ?? ''
}

/** The result of work in a transaction, and a function that says whether that has ended. */
interface Joined<T> {
  readonly value: T
  readonly hasEnded: () => Promise<boolean>
}

/** Does work inside the user's transaction, or inside one of ours. */
export async function insideTransaction<T>(
  tx: unknown,
  database: Database,
  storeId: string,
  work: (session: Session) => Promise<T>,
): Promise<Joined<T>> {
  const own = typeof tx === 'object' && tx !== null ? lentFor(tx, database) : undefined
  if (own !== undefined) {
    const session = new CutSession(own.session)
    const value = await inTurn(own.session, () =>
      behindSavepoint(
        (text) => session.run(text),
        () => work(session),
      ),
    )
    return { value, hasEnded: async () => own.life.isOver }
  }
  if (!isTransaction(tx)) throw foreignTx(tx, 'a client with query(text, values)')
  const session = new JoinedSession(tx, database.schema)
  const joined = async (): Promise<Joined<T>> => {
    const at = await joinedAt(session)
    if (at?.id !== storeId) throw new TxInvalid('it is open on another database')
    return { value: await work(session), hasEnded: () => hasEnded(database, at.tx) }
  }
  return inTurn(tx, () => behindSavepoint((text) => tx.query(text), joined))
}

/** The session of a tx of ours; `undefined` if the user has opened the transaction. */
function lentFor(tx: object, database: Database): Lent | undefined {
  const found = lent.get(tx)
  if (found === null) throw new TxEnded()
  if (found === undefined || found.from === database) return found
  throw new TxInvalid('it belongs to another store')
}

const SELECT_STATUS = statement(() => 'SELECT pg_xact_status($1::text::xid8) AS status')
const IN_THE_FUTURE = '22023'

/** Asks the server for the transaction by its number; one that it does not know has ended. */
async function hasEnded(database: Database, tx: string): Promise<boolean> {
  try {
    const [row] = await database.atOnce((session) =>
      session.query<{ status: string | null }>(SELECT_STATUS, [tx]),
    )
    return row?.status !== 'in progress'
  } catch (error) {
    // Another server after a fail-over, which never had that transaction.
    if (codeOf(error) === IN_THE_FUTURE) return true
    throw error
  }
}

/** The last work of each transaction. */
const last = new WeakMap<object, Promise<unknown>>()

/** One after the other: an error would otherwise undo the work of another call. */
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
    if (isWithoutSavepoint(error)) throw new TxEnded()
    // If this fails, too, the connection is gone, and the transaction with it.
    await run('ROLLBACK TO SAVEPOINT pawl').catch(() => {})
    throw toPawlError(error)
  }
}

/** The caller ended the transaction, and may have begun another, while a job was enqueued. */
function isWithoutSavepoint(error: unknown): boolean {
  const code = codeOf(error)
  return code === NO_TRANSACTION || code === NO_SAVEPOINT
}

function isTransaction(tx: unknown): tx is PostgresTx {
  return typeof (tx as Partial<PostgresTx> | null | undefined)?.query === 'function'
}

const NO_TRANSACTION = '25P01'
const FAILED_TRANSACTION = '25P02'
const NO_SAVEPOINT = '3B001'

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

/**
 * The number of the transaction is also kept as a setting that ends with it: INSERTs of a joined
 * session add nothing after the transaction (`IN_JOINED`).
 */
const SELECT_JOINED = statement(
  (s) => `SELECT id, set_config('pawl.tx', pg_current_xact_id()::text, true) AS tx
  FROM ${s}.store`,
)

/** A condition of statements: the transaction is the one that was joined. */
export const IN_JOINED = `pg_current_xact_id_if_assigned()::text = current_setting('pawl.tx', true)`

interface JoinedAt {
  readonly id: string
  readonly tx: string
}

async function joinedAt(session: Session): Promise<JoinedAt | undefined> {
  try {
    return (await session.query<JoinedAt>(SELECT_JOINED))[0]
  } catch (error) {
    if (codeOf(error) === UNDEFINED_TABLE) return undefined
    throw error
  }
}

/** Columns with whole numbers, which drivers may return as texts. */
const NUMBERS = new Set(
  `machine timeout_ms deadline_at seq attempt failures crashes releases priority ahead_ms
  run_at created_at started_at ended_at updated_at stalled lease_until cancel_asked_at at
  node links size callbacks open parked live`.split(/\s+/),
)

/** A transaction of ours while a job is enqueued in it; throws once that must not go on. */
class CutSession implements Session {
  readonly #session: OwnSession

  constructor(session: OwnSession) {
    this.#session = session
  }

  get wrote(): Session['wrote'] {
    return this.#session.wrote
  }

  set wrote(trail: Session['wrote']) {
    this.#session.wrote = trail
  }

  async query<Row>(made: Statement, values?: readonly Value[]): Promise<Row[]> {
    this.#assertOpen()
    return this.#session.query<Row>(made, values)
  }

  async run(text: string): Promise<void> {
    this.#assertOpen()
    return this.#session.run(text)
  }

  #assertOpen(): void {
    if (cut.has(this.#session)) throw new TxEnded()
  }
}

/** A transaction of the user's while a verb uses it. */
class JoinedSession implements Session {
  readonly isJoined = true
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
