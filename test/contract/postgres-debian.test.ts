// The PostgreSQL store passes the contract of stores on the PostgreSQL of a Debian system, which is
// older than that of the development dependencies.
import { describe } from 'vitest'
import { findDebianPostgres } from '../support/postgres/binaries.ts'
import { startPostgres } from '../support/postgres/server.ts'
import { postgresContract } from './postgres-bench.ts'

const binaries = findDebianPostgres()
const skipped = binaries === undefined ? ' (skipped: none is installed)' : ''

describe.skipIf(skipped)(`the PostgreSQL store on Debian's PostgreSQL${skipped}`, () => {
  postgresContract(async () => {
    const server = await startPostgres(binaries === undefined ? {} : { binaries })
    return { url: server.url, storeUrl: server.url, leave: () => server.stop() }
  })
})
