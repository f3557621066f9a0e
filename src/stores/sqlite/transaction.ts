/** Functions of the user's on the writer's connection, inside its transaction. */
import { TransactionTooSlow, TxBroken } from '../errors.ts'
import type { Value } from '../rows.ts'
import type { StoreTx } from '../store.ts'
import { BOUND_MS, runBounded, type TxAccess } from '../transaction-function.ts'
import { toStoreFailure } from './busy.ts'
import type { Connection } from './connect.ts'
import type { Shared } from './context.ts'
import { isInTransaction, lendConnection } from './join.ts'

/** Runs the function of a transaction inside the caller's transaction. */
export function runTransaction<T>(
  { environment }: Shared,
  connection: Connection,
  work: (tx: StoreTx) => T | Promise<T>,
): Promise<T> {
  return runBounded(environment, accessTo(connection), {
    boundMs: BOUND_MS,
    tooSlow: () => new TransactionTooSlow(BOUND_MS),
    extend: (tx) => tx,
    work,
  })
}

/** How a function gets into the transaction of a connection. */
export function accessTo(connection: Connection): TxAccess {
  const { database } = connection
  return {
    async query(sql, values = []) {
      try {
        return database.prepare(sql).all(...(values as Value[]))
      } catch (error) {
        throw toStoreFailure(error) ?? error
      }
    },
    raw: database,
    // A full disk, or INSERT OR ROLLBACK: what came after it would be true at once, and alone.
    assertWhole() {
      if (!isInTransaction(database)) throw new TxBroken()
    },
    lend: (tx) => lendConnection(tx, connection),
  }
}
