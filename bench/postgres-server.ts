// The PostgreSQL of the benchmark: a server of its own with default settings, so that every commit
// waits for the disk, and a fresh database for each turn. Dropping one makes the server write down
// everything that it holds, hence no turn pays for what an earlier one has left.
import { Client } from 'pg'
import { startPostgres } from '../test/support/postgres/server.ts'
import type { Result } from './measure.ts'

/** Something that can be measured on a server, under one name or several. */
export interface Measurement {
  readonly names: readonly string[]
  /** Measures what goes by the given names; a tenth of it where it should be quick. */
  readonly run: (
    serverUrl: string,
    names: readonly string[],
    quick: boolean,
  ) => Promise<readonly Result[]>
}

/** Gives the connection string of a new server, and ends it afterwards. */
export async function withServer<T>(work: (url: string) => Promise<T>): Promise<T> {
  const server = await startPostgres({ settings: { max_connections: 200 } })
  try {
    return await work(server.url)
  } finally {
    await server.stop()
  }
}

let databases = 0

/** Gives the connection string of a new database, and drops it afterwards. */
export async function inDatabase<T>(
  serverUrl: string,
  work: (url: string, name: string) => Promise<T>,
  template = 'template1',
): Promise<T> {
  const name = `bench_${++databases}`
  await execute(serverUrl, `CREATE DATABASE ${name} TEMPLATE ${template}`)
  try {
    return await work(Object.assign(new URL(serverUrl), { pathname: `/${name}` }).href, name)
  } finally {
    await execute(serverUrl, `DROP DATABASE ${name} WITH (FORCE)`)
  }
}

/** Runs one statement on a connection of its own. */
export async function execute(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}
