// The servers that all tests share, and places on them that belong to one test.
import { randomUUID } from 'node:crypto'
import { Client } from 'pg'
import { afterAll, beforeAll, inject, onTestFinished } from 'vitest'
import { type PostgresServer, startPostgres } from './server.ts'

/** The shared servers as the global set-up gives them: where they are, or why there are none. */
type SharedPostgres = { readonly urls: readonly string[] } | { readonly missing: string }

declare module 'vitest' {
  export interface ProvidedContext {
    postgres: SharedPostgres
  }
}

/**
 * The connection string of the shared server. Files that run at the same time have one each: an
 * open transaction of anybody keeps back all who follow a ledger on the same server.
 */
export function sharedPostgres(): string {
  const shared = inject('postgres')
  if ('missing' in shared) throw new Error(`There is no PostgreSQL: ${shared.missing}`)
  const place = (Number(process.env.VITEST_POOL_ID) - 1) % shared.urls.length
  return shared.urls[place] as string
}

/**
 * A server for the tests of one file. Seals wait for every open transaction of their server, also
 * for one that an earlier file has left to its time-out.
 */
export function ownPostgres(): { readonly url: () => string } {
  let server: PostgresServer | undefined
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server?.stop())
  return { url: () => (server as PostgresServer).url }
}

/**
 * The name of a schema that no other test uses. Nobody has created it yet; whatever is in it is
 * removed when the test has ended.
 */
export function freshSchema(url: string): string {
  const schema = uniqueName()
  // A test that leaves a lock behind is to fail, not to hang.
  const drop = `set local lock_timeout = '5s'; drop schema if exists ${schema} cascade`
  onTestFinished(() => execute(url, `begin; ${drop}; commit`))
  return schema
}

/** The connection string of a new, empty database on the server; it lasts as long as the test. */
export async function freshDatabase(url: string): Promise<string> {
  const database = uniqueName()
  await execute(url, `create database ${database}`)
  onTestFinished(() => execute(url, `drop database if exists ${database} with (force)`))
  return Object.assign(new URL(url), { pathname: `/${database}` }).href
}

function uniqueName(): string {
  return `test_${randomUUID().replaceAll('-', '')}`
}

async function execute(url: string, sql: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}

/** The same for as long as its owner wants it. */
export async function freshServerDatabase(
  server = sharedPostgres(),
): Promise<{ url: string; drop: () => Promise<void> }> {
  const database = uniqueName()
  await execute(server, `create database ${database}`)
  return {
    url: Object.assign(new URL(server), { pathname: `/${database}` }).href,
    drop: () => execute(server, `drop database if exists ${database} with (force)`),
  }
}
