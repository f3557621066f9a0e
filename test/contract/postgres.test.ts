// The PostgreSQL store passes the contract of stores. `npm run prove` repeats the hostile values,
// each in every place.
import { describe } from 'vitest'
import { isProof } from '../support/extent.ts'
import { sharedPostgres } from '../support/postgres/databases.ts'
import { postgresContract } from './postgres-bench.ts'

describe('the PostgreSQL store', () => {
  postgresContract(
    async () => ({ url: sharedPostgres(), storeUrl: sharedPostgres(), leave: async () => {} }),
    { values: isProof ? 'only' : 'with', keepsConnections: true },
  )
})
