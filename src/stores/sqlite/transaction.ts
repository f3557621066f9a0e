/** Functions of the user on the writer's connection, inside its transaction. */

import type { StoreTx } from '../contract/store.ts'
import { TransactionTooSlow, TxBroken } from '../errors.ts'
import { BOUND_MS, runBounded, type TxAccess } from '../transaction-function.ts'
import { toStoreFailure } from './busy.ts'
import type { Connection } from './connect.ts'
import type { Shared } from './context.ts'
import type { Statement } from './driver.ts'
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
    dialect: 'sqlite',
    async run({ text, values }) {
      try {
        return allOf(database.prepare(text), values)
      } catch (error) {
        throw toStoreFailure(error) ?? error
      }
    },
    raw: database,
    // After a full disk or INSERT OR ROLLBACK, later statements would be committed one by one.
    assertWhole() {
      if (!isInTransaction(database)) throw new TxBroken()
    },
    lend: (tx) => lendConnection(tx, connection),
  }
}

/**
 * All rows of a statement of the user. Numbers that JavaScript cannot hold are returned as bigint,
 * as they were passed; by default the driver refuses to read them after it has written.
 */
export function allOf(statement: Statement, values: readonly unknown[]): unknown[] {
  statement.setReadBigInts?.(true)
  const rows = statement.all(...(values as never[])) as Record<string, unknown>[]
  for (const row of rows) {
    for (const [name, value] of Object.entries(row)) {
      const number = typeof value === 'bigint' ? Number(value) : Number.NaN
      if (Number.isSafeInteger(number)) row[name] = number
    }
  }
  return rows
}
