/**
 * The user's own transaction. The handle must belong to the SQLite library that the store uses: two
 * libraries on one file in one process release each other's locks (`file-guard.ts`). It must be
 * open on the same file and inside a transaction, because only then are the user's writes and the
 * new jobs committed or rolled back together.
 */

import { realpathSync } from 'node:fs'
import { messageOf } from '../../core/errors.ts'
import { TxBroken, TxEnded, TxForeign, TxInvalid } from '../errors.ts'
import { foreignTx } from '../foreign-tx.ts'
import type { Loan } from '../transaction-function.ts'
import { Connection } from './connect.ts'
import type { Database } from './driver.ts'

/** One connection per handle, so that its statements are prepared once. */
const joined = new WeakMap<object, Connection>()

/** The connection of each tx of ours; absent when its function has ended. */
const lent = new WeakMap<object, Connection | null>()

/** Lets the tx of a commit or transaction be joined. A job is enqueued without a pause. */
export function lendConnection(tx: object, connection: Connection): Loan {
  lent.set(tx, connection)
  return { end: () => void lent.set(tx, null) }
}

/**
 * Returns a function that tells whether the transaction has ended that was joined by `tx`. While
 * the same handle is in a later transaction, that is not known, and the answer is no.
 */
export function endOf(tx: object, { database }: Connection): () => Promise<boolean> {
  return async () => {
    if (lent.get(tx) !== undefined && lent.get(tx) !== null) return false
    try {
      return !isInTransaction(database)
    } catch {
      // The handle is closed, and its transaction was rolled back.
      return true
    }
  }
}

/** The user's handle, or a tx of ours, as a connection of this store. */
export function joinTransaction(tx: unknown, own: Connection): Connection {
  const lender = typeof tx === 'object' && tx !== null ? lent.get(tx) : undefined
  if (lender === own) {
    // After INSERT OR ROLLBACK or RAISE(ROLLBACK) the jobs would be committed at once, and alone.
    if (!isInTransaction(own.database)) throw new TxBroken()
    return own
  }
  if (lender === null) throw new TxEnded()
  if (lender !== undefined) throw new TxInvalid('it belongs to another store')
  if (!isDatabase(tx)) throw foreignTx(tx, 'a handle of the SQLite driver')
  const connection = joined.get(tx) ?? connectionOf(tx, own)
  const [theirs, ours] = [fileOf(connection), fileOf(own)]
  if (theirs === undefined || theirs !== ours) throw new TxInvalid('it is open on another database')
  if (!isInTransaction(tx)) throw new TxInvalid('it is not inside a transaction')
  return connection
}

/** The handle as a connection; throws `TxForeign` if it belongs to another library. */
function connectionOf(tx: Database, own: Connection): Connection {
  const connection = new Connection(tx)
  const isKin = rootOf(tx) === rootOf(own.database)
  // Two copies of one release have the same source id, and one copy cannot have two.
  if (!isKin || sourceOf(connection) !== sourceOf(own)) {
    throw new TxForeign(describe(connection), describe(own))
  }
  joined.set(tx, connection)
  return connection
}

/** What all handles of one library inherit from. The user's own classes may extend it. */
function rootOf(handle: object): object {
  let root: object = Object.getPrototypeOf(handle) as object
  for (let next = root; next !== Object.prototype && next !== null; ) {
    root = next
    next = Object.getPrototypeOf(next) as object
  }
  return root
}

const SELECT_SOURCE = 'SELECT sqlite_source_id() AS source'

function sourceOf(connection: Connection): string | undefined {
  return connection.get<{ source: string }>(SELECT_SOURCE)?.source
}

/** For an error message; whatever the handle is, describing it must not fail. */
function describe({ database }: Connection): string {
  const { name } = database.constructor
  try {
    const row = database.prepare('SELECT sqlite_version() AS version').get()
    return `a ${name} of SQLite ${(row as { version: string }).version}`
  } catch {
    return `a ${name} of an unknown library`
  }
}

function isDatabase(tx: unknown): tx is Database {
  const handle = tx as Partial<Database> | null | undefined
  return typeof handle?.prepare === 'function' && typeof handle.exec === 'function'
}

/** The file of a connection; `undefined` for a database in memory. */
export function fileOf(connection: Connection): string | undefined {
  const list = connection.all<{ name: string; file: string }>('PRAGMA database_list')
  const file = list.find(({ name }) => name === 'main')?.file
  return file === undefined || file === '' ? undefined : realpathSync(file)
}

/** Some drivers know. Otherwise a second BEGIN is refused inside a transaction. */
export function isInTransaction(database: Database): boolean {
  if (database.isTransaction !== undefined) return database.isTransaction
  try {
    database.exec('BEGIN')
  } catch (error) {
    return /within a transaction/.test(messageOf(error))
  }
  database.exec('ROLLBACK')
  return false
}
