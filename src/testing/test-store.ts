/**
 * The store of a test: SQLite in memory, or a schema of its own on a PostgreSQL server. On
 * PostgreSQL a second schema holds the tables of the test; the connections of the store look there
 * first, so neither meets those of other tests. Both schemas are dropped at the end.
 */
import { randomUUID } from 'node:crypto'
import { CommandInvalid } from '../core/errors.ts'
import type { CommitTx, Store } from '../stores/contract/store.ts'
import { openPool, type PgPool } from '../stores/postgres/driver.ts'
import { openPostgresStore } from '../stores/postgres/open.ts'
import type { PostgresOptions } from '../stores/postgres/options.ts'
import { openSqlite } from '../stores/sqlite/store.ts'

/** A store and what belongs to it. */
export interface TestStore {
  readonly store: Store
  readonly query: CommitTx['query']
  /** Closes the store and removes what the test has written. */
  readonly close: () => Promise<void>
}

type Opening = Pick<
  PostgresOptions,
  'lifecycles' | 'environment' | 'logger' | 'onFindings' | 'payloadBytesMax' | 'payloadDepthMax'
>

/** Opens the store that the option `store` names; in memory if it is absent. */
export async function openTestStore(
  name: string | undefined,
  options: Opening,
): Promise<TestStore> {
  if (name === undefined || name === 'sqlite::memory:') {
    const { store, query } = await openSqlite({ path: ':memory:', ...options })
    return { store, query, close: () => store.close() }
  }
  if (/^postgres(ql)?:\/\//.test(name)) return openSchema(name, options)
  throw new CommandInvalid('store', "must be 'postgres://…' or 'sqlite::memory:'")
}

async function openSchema(connectionString: string, options: Opening): Promise<TestStore> {
  const schema = `pawl_test_${randomUUID().replaceAll('-', '')}`
  const tables = `${schema}_own`
  const { pool } = await openPool({ connectionString, max: 1 })
  pool.on('error', () => {})
  try {
    await run(pool, `CREATE SCHEMA ${tables}`)
    const store = await openPostgresStore({
      ...options,
      schema,
      clock: 'environment',
      config: { connectionString, options: `-c search_path=${tables},public` },
    })
    return {
      store,
      query: (sql, values) => store.transaction((tx) => tx.query(sql, values)),
      async close() {
        await store.close()
        await drop()
      },
    }
  } catch (error) {
    await drop()
    throw error
  }

  async function drop(): Promise<void> {
    try {
      await run(pool, `DROP SCHEMA IF EXISTS ${schema}, ${tables} CASCADE`)
    } finally {
      await pool.end()
    }
  }
}

function run(pool: PgPool, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    pool.connect((error, client) => {
      if (client === undefined) return reject(error ?? new Error('There is no connection'))
      client.query({ text }).then(
        () => {
          client.release()
          resolve()
        },
        (refused: unknown) => {
          client.release(true)
          reject(refused)
        },
      )
    })
  })
}
