/**
 * The user's own transaction. A handle is taken for what it can do, not for what it is: any driver
 * whose statements have run, get and all will do. It must be open on the same file, and it must be
 * inside a transaction, because only then do the user's writes and the new jobs stand or fall
 * together.
 */

import { realpathSync } from 'node:fs'
import { messageOf } from '../../core/errors.ts'
import { TxInvalid } from '../errors.ts'
import { Connection } from './connect.ts'
import type { Database } from './driver.ts'

/** One connection per handle, so that its statements are prepared once. */
const joined = new WeakMap<object, Connection>()

/** The connections of commits whose functions run now. */
const lent = new WeakMap<object, Connection>()

/** Lets the tx of a commit be joined, until the returned function is called. */
export function lendConnection(tx: object, connection: Connection): () => void {
  lent.set(tx, connection)
  return () => void lent.delete(tx)
}

/** The user's handle, or the tx of a commit, as a connection of this store. */
export function joinTransaction(tx: unknown, own: Connection): Connection {
  const inCommit = typeof tx === 'object' && tx !== null ? lent.get(tx) : undefined
  if (inCommit === own) return own
  if (!isDatabase(tx)) throw new TxInvalid('it is no handle of a SQLite database')
  const connection = joined.get(tx) ?? new Connection(tx)
  joined.set(tx, connection)
  const [theirs, ours] = [fileOf(connection), fileOf(own)]
  if (theirs === undefined || theirs !== ours) throw new TxInvalid('it is open on another database')
  if (!isInTransaction(tx)) throw new TxInvalid('it is not inside a transaction')
  return connection
}

function isDatabase(tx: unknown): tx is Database {
  const handle = tx as Partial<Database> | null | undefined
  return typeof handle?.prepare === 'function' && typeof handle.exec === 'function'
}

function fileOf(connection: Connection): string | undefined {
  const list = connection.all<{ name: string; file: string }>('PRAGMA database_list')
  const file = list.find(({ name }) => name === 'main')?.file
  return file === undefined || file === '' ? undefined : realpathSync(file)
}

/** Some drivers know; else, a second BEGIN is refused inside a transaction. */
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
