/**
 * Query builders on the transaction of Pawl's own connection to a SQLite file. Both know no driver
 * for `node:sqlite`, so each needs an adapter; copy the one that you need. On PostgreSQL no adapter
 * is needed, because `tx.raw` is a client of `pg`.
 */
import { drizzle } from 'drizzle-orm/sqlite-proxy'
import { Kysely, SqliteDialect } from 'kysely'
import type { Transaction } from 'pawl'

type Value = string | number | bigint | null | Uint8Array

interface Statement {
  columns(): readonly unknown[]
  setReturnArrays(isOn: boolean): void
  all(...values: Value[]): unknown[]
  run(...values: Value[]): { changes: number | bigint; lastInsertRowid: number | bigint }
  iterate(...values: Value[]): IterableIterator<unknown>
}

/** The part of a `DatabaseSync` that the adapters use. */
interface Handle {
  prepare(sql: string): Statement
}

/** A Kysely whose statements run in the transaction. */
export function kyselyOn<Tables>({ raw }: Transaction): Kysely<Tables> {
  const prepare = (sql: string) => {
    const statement = (raw as Handle).prepare(sql)
    return {
      reader: statement.columns().length > 0,
      all: (values: readonly unknown[]) => statement.all(...(values as Value[])),
      run: (values: readonly unknown[]) => statement.run(...(values as Value[])),
      iterate: (values: readonly unknown[]) => statement.iterate(...(values as Value[])),
    }
  }
  return new Kysely({ dialect: new SqliteDialect({ database: { prepare, close() {} } }) })
}

/** A Drizzle whose statements run in the transaction. */
export function drizzleOn({ raw }: Transaction) {
  return drizzle(async (sql, values: Value[], method) => {
    const statement = (raw as Handle).prepare(sql)
    if (method === 'run') {
      statement.run(...values)
      return { rows: [] }
    }
    statement.setReturnArrays(true)
    const rows = statement.all(...values)
    return { rows: method === 'get' ? (rows[0] as unknown[]) : rows }
  })
}
