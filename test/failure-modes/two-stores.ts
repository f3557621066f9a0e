// Both kinds of store under a time that the test owns, twice each: two processes on one database.
import { join } from 'node:path'
import { type TestEnvironment, testEnvironment } from 'pawl/testing'
import { onTestFinished } from 'vitest'
import type { Store } from '../../src/stores/contract/store.ts'
import { openPostgresStore } from '../../src/stores/postgres/open.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { freshFolder } from '../processes/folder.ts'
import { freshStoreDatabase } from '../support/postgres/databases.ts'

/** Two ways to one database. */
export interface TwoStores {
  readonly environment: TestEnvironment
  readonly one: Store
  readonly other: Store
}

type Open = (environment: TestEnvironment) => Promise<Store>

async function twice(open: Open): Promise<TwoStores> {
  const environment = testEnvironment()
  const [one, other] = [await open(environment), await open(environment)]
  onTestFinished(async () => {
    await one.close()
    await other.close()
  })
  return { environment, one, other }
}

async function onFile(): Promise<TwoStores> {
  const path = join(freshFolder(), 'jobs.db')
  return twice((environment) => openSqliteStore({ path, environment }))
}

async function onServer(): Promise<TwoStores> {
  const connectionString = await freshStoreDatabase()
  return twice((environment) =>
    openPostgresStore({ connectionString, environment, clock: 'environment', connections: 3 }),
  )
}

/** Both kinds. */
export const TWO_STORES = [
  { name: 'a SQLite file', open: onFile },
  { name: 'PostgreSQL', open: onServer },
] as const
