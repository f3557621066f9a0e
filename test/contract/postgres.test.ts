// The PostgreSQL store passes the contract of stores.
import { describe } from 'vitest'
import { sharedPostgres } from '../support/postgres/databases.ts'
import { postgresContract } from './postgres-bench.ts'

describe('the PostgreSQL store', () => {
  postgresContract(
    async () => ({ url: sharedPostgres(), storeUrl: sharedPostgres(), leave: async () => {} }),
    { everything: true },
  )
})
