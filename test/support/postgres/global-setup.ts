// One PostgreSQL for each of the test files that run at the same time. They come from the
// development dependencies, unless PAWL_TEST_POSTGRES_URL names a server, in which tests then make
// schemas and databases.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { openPostgresStore } from '../../../src/stores/postgres/open.ts'
import { testEnvironment } from '../../../src/testing/test-environment.ts'
import type {} from './databases.ts'
import { type PostgresServer, startPostgres } from './server.ts'

const TEMPLATE = 'pawl_template'

/** Starts the servers, or says to the tests that need one why there is none. */
export default async function setup({ provide, config }: TestProject) {
  const given = process.env.PAWL_TEST_POSTGRES_URL
  if (given) {
    provide('postgres', { urls: [given], claims: tmpdir() })
    return
  }
  try {
    const starting = Array.from({ length: Number(config.maxWorkers) }, () =>
      startPostgres({ settings: { max_connections: 200 } }),
    )
    const servers = await Promise.all(starting)
    await Promise.all(servers.map(makeTemplate))
    const claims = mkdtempSync(join(tmpdir(), 'pawl-servers-'))
    provide('postgres', { urls: servers.map(({ url }) => url), claims, template: TEMPLATE })
    return async () => {
      await Promise.all(servers.map((server) => server.stop()))
      rmSync(claims, { recursive: true, force: true })
    }
  } catch (error) {
    provide('postgres', { missing: String(error) })
    return
  }
}

/** Makes the database that `freshStoreDatabase` copies. */
async function makeTemplate({ url }: PostgresServer): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`create database ${TEMPLATE}`)
  await client.end()
  const connectionString = Object.assign(new URL(url), { pathname: `/${TEMPLATE}` }).href
  const environment = testEnvironment()
  await (await openPostgresStore({ connectionString, environment, clock: 'environment' })).close()
}
