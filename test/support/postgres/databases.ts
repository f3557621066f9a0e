// The servers that all tests share, and places on them that belong to one test.
import { randomUUID } from 'node:crypto'
import { Client } from 'pg'
import { afterAll, beforeAll, inject, onTestFinished } from 'vitest'
import { type PostgresServer, startPostgres } from './server.ts'
import { claimPlace } from './shared-place.ts'

/** The shared servers as the global set-up gives them: where they are, or why there are none. */
type SharedPostgres =
  | {
      readonly urls: readonly string[]
      readonly claims: string
      /** On each server: a database with an empty store, to be copied. */
      readonly template?: string
    }
  | { readonly missing: string }

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
  const { urls, claims } = shared
  return urls[urls.length === 1 ? 0 : claimPlace(claims, urls.length)] as string
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

/**
 * The same with an empty store in the schema `pawl`, on the shared server. It is copied, because to
 * apply all migrations takes longer than most tests. All copies have the same store id.
 */
export async function freshStoreDatabase(): Promise<string> {
  const { url, drop } = await freshServerDatabase(sharedPostgres(), templateOf(inject('postgres')))
  onTestFinished(drop)
  return url
}

function templateOf(shared: SharedPostgres): string | undefined {
  return 'missing' in shared ? undefined : shared.template
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

/**
 * A new database for as long as its owner wants it; empty, or a copy of a template. The files of a
 * template are copied: to log each of its pages takes twice the time.
 */
export async function freshServerDatabase(
  server = sharedPostgres(),
  template?: string,
): Promise<{ url: string; drop: () => Promise<void> }> {
  const database = uniqueName()
  const copied = template === undefined ? '' : ` template ${template} strategy file_copy`
  await execute(server, `create database ${database}${copied}`)
  return {
    url: Object.assign(new URL(server), { pathname: `/${database}` }).href,
    drop: () => execute(server, `drop database if exists ${database} with (force)`),
  }
}
