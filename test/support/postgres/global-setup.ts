// One PostgreSQL for all test files. It comes from the development dependencies, unless
// PAWL_TEST_POSTGRES_URL names a server, in which tests then make schemas and databases.
import type { TestProject } from 'vitest/node'
import type {} from './databases.ts'
import { startPostgres } from './server.ts'

/** Starts the server, or says to the tests that need one why there is none. */
export default async function setup({ provide }: TestProject) {
  const given = process.env.PAWL_TEST_POSTGRES_URL
  if (given) {
    provide('postgres', { url: given })
    return
  }
  try {
    const server = await startPostgres({ settings: { max_connections: 200 } })
    provide('postgres', { url: server.url })
    return () => server.stop()
  } catch (error) {
    provide('postgres', { missing: String(error) })
    return
  }
}
