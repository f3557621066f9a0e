// One PostgreSQL for each of the test files that run at the same time. They come from the
// development dependencies, unless PAWL_TEST_POSTGRES_URL names a server, in which tests then make
// schemas and databases.
import type { TestProject } from 'vitest/node'
import type {} from './databases.ts'
import { startPostgres } from './server.ts'

/** Starts the servers, or says to the tests that need one why there is none. */
export default async function setup({ provide, config }: TestProject) {
  const given = process.env.PAWL_TEST_POSTGRES_URL
  if (given) {
    provide('postgres', { urls: [given] })
    return
  }
  try {
    const starting = Array.from({ length: Number(config.maxWorkers) }, () =>
      startPostgres({ settings: { max_connections: 200 } }),
    )
    const servers = await Promise.all(starting)
    provide('postgres', { urls: servers.map(({ url }) => url) })
    return () => Promise.all(servers.map((server) => server.stop()))
  } catch (error) {
    provide('postgres', { missing: String(error) })
    return
  }
}
