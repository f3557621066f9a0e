// A store by its options: `createPawl` opens and closes it, and its workers renew their leases in a
// thread, also with a pool of the user's.
import { join } from 'node:path'
import { CommandInvalid, createPawl, defineJob, type PawlOptions } from 'pawl'
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { placeOfOption } from '../../src/engine/store-options.ts'
import { findRenewal } from '../../src/engine/worker/renewal.ts'
import { freshFolder } from '../processes/folder.ts'
import { connected } from '../support/postgres/clients.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres/databases.ts'

const timeout = 30_000
const job = defineJob({ name: 'echo', run: async ({ attempt }) => attempt })
const BUILT = new URL('../../dist/engine/worker/renewal.js', import.meta.url).href

async function runOne(store: PawlOptions['store']): Promise<void> {
  await using pawl = await createPawl({ store, jobs: [job] })
  await pawl.work()
  const handle = await pawl.enqueue(job, null)
  expect(await handle.result({ timeout: '15s' })).toMatchObject({ output: 1 })
}

describe('a store by its options', () => {
  it('is a SQLite file', { timeout }, async () => {
    const path = join(freshFolder(), 'jobs.db')
    await runOne({ sqlite: { path, durability: 'relaxed' } })
    await using pawl = await createPawl({ store: `sqlite:${path}` })
    expect((await pawl.store.counts()).lanes.ended).toBe(1)
  })

  it('is a schema of a PostgreSQL database', { timeout }, async () => {
    const connectionString = await freshDatabase(sharedPostgres())
    await runOne({ postgres: { connectionString, schema: 'jobs', connections: 4 } })
    const client = await connected(connectionString)
    expect((await client.query('SELECT count(*)::int AS n FROM jobs.jobs')).rows).toEqual([
      { n: 1 },
    ])
  })

  it('is reached through a pool, which stays open', { timeout }, async () => {
    const connectionString = await freshDatabase(sharedPostgres())
    const pool = new pg.Pool({ connectionString, max: 4 })
    // The database goes away while idle connections are still in the pool.
    pool.on('error', () => {})
    onTestFinished(() => pool.end())
    await runOne({ postgres: { pool } })
    expect((await pool.query('SELECT count(*)::int AS n FROM pawl.jobs')).rows).toEqual([{ n: 1 }])
    const renewal = findRenewal(placeOfOption({ postgres: { pool, schema: 'a' } }), BUILT)
    expect(renewal).toMatchObject({
      kind: 'thread',
      place: { kind: 'postgres', options: { schema: 'a', config: { connectionString } } },
    })
  })
})

describe('the thread that renews leases', () => {
  const renewalOf = (store: PawlOptions['store']) => findRenewal(placeOfOption(store), BUILT)

  it('receives the password of a pool, and options that can be passed', () => {
    const pool = new pg.Pool({ host: 'h', user: 'u', password: 'secret', ssl: { ca: 'x' }, max: 3 })
    expect(renewalOf({ postgres: { pool } })).toMatchObject({
      kind: 'thread',
      place: { options: { config: { host: 'h', user: 'u', password: 'secret' } } },
    })
    const config = { host: 'h', max: 7, ssl: { rejectUnauthorized: false } }
    const { max: _, ...passed } = config
    expect(renewalOf({ postgres: { config } })).toMatchObject({
      place: { options: { config: passed } },
    })
  })

  it.each<[string, PawlOptions['store'], string]>([
    ['a password function', { postgres: { config: { password: () => 'x' } } }, 'options'],
    [
      'a driver of its own',
      { sqlite: { path: 'a', driver: { DatabaseSync: class {} as never } } },
      'options',
    ],
    ['a database in memory', { sqlite: { path: ':memory:' } }, 'memory'],
    ['a database in memory by name', 'sqlite::memory:', 'memory'],
  ])('is missing for %s, and the worker says why', (_, store, why) => {
    expect(renewalOf(store)).toMatchObject({ kind: 'timer', why })
  })

  it('is missing for a store that is open, for sources and for lone bundles', () => {
    expect(findRenewal(undefined, BUILT)).toMatchObject({ why: 'store', advice: expect.anything() })
    const place = placeOfOption('sqlite:a.db')
    expect(findRenewal(place, 'file:///app/renewal.ts')).toMatchObject({ why: 'sources' })
  })
})

describe('options that contradict each other', () => {
  const refused: [string, PawlOptions['store'], RegExp][] = [
    // @ts-expect-error: two databases
    ['two databases', { sqlite: { path: 'a' }, postgres: {} }, /either postgres or sqlite/],
    // @ts-expect-error: no path
    ['no path', { sqlite: {} }, /path/],
    // @ts-expect-error: an unknown option
    ['an unknown option', { sqlite: { path: 'a', pool: {} } }, /store\.sqlite\.pool/],
    // @ts-expect-error: an unknown field
    ['an unknown field', { sqlite: { path: 'a' }, schema: 'a' }, /store\.schema/],
    [
      'a pool with a connection string',
      // @ts-expect-error: a pool has its own
      { postgres: { pool: {} as pg.Pool, connectionString: 'postgres://a' } },
      /store\.postgres\.connectionString/,
    ],
    [
      'a pool with connections',
      // @ts-expect-error: a pool has its own
      { postgres: { pool: {} as pg.Pool, connections: 3 } },
      /store\.postgres\.connections/,
    ],
    ['a bad number', { postgres: { connections: 0 } }, /connections/],
    // @ts-expect-error: not an object
    ['a text in the place of options', { postgres: 'postgres://a' }, /store\.postgres/],
  ]

  it.each(refused)('%s', async (_, store, message) => {
    const opening = createPawl({ store })
    await expect(opening).rejects.toThrow(message)
    await expect(opening).rejects.toBeInstanceOf(CommandInvalid)
  })
})
