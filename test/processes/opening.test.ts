// Opening a store: by many processes at once, and where it must be refused.
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { LIFECYCLES } from 'pawl/rules'
import { openSqliteStore, printSqliteSchema as printSql } from 'pawl/sqlite'
import { describe, expect, it } from 'vitest'
import { type Helper, withHelpers } from './children.ts'
import { freshFolder } from './folder.ts'
import { allJobs, execute, integrityOf, rowsOf, sha256Of } from './inspect.ts'

const OPENER = new URL('./opener.mjs', import.meta.url)
const OPERATING = { timeout: 60_000 }

/** What a helper answers; nothing but the error where there was one. */
interface Told {
  readonly error?: { readonly name: string; readonly code: string; readonly message: string }
}

const idOf = (n: number) => `00000000-0000-7000-a000-${String(n).padStart(12, '0')}`

/** A store that no process has open, with everything in the file itself. */
async function closedStore(helper: Helper, path: string): Promise<void> {
  expect(await helper.ask({ kind: 'churn', path, ids: [idOf(1)] })).toEqual({})
  await helper.stop()
  execute(path, 'PRAGMA wal_checkpoint(TRUNCATE)')
}

describe('several processes', OPERATING, () => {
  it('open and migrate a new file at the same time, and make one schema', async () => {
    const folder = freshFolder()
    await withHelpers(OPENER, 8, async (helpers) => {
      for (let round = 0; round < 10; round++) {
        const path = join(folder, `${round}.db`)
        const asked = helpers.map((helper) => helper.ask<Told>({ kind: 'open', path }))
        const errors = (await Promise.all(asked)).flatMap(({ error }) => error ?? [])
        expect(errors).toEqual([])
        expect(rowsOf(path, 'SELECT number FROM pawl_migrations')).toEqual([
          { number: 1 },
          { number: 2 },
          { number: 3 },
          { number: 4 },
          { number: 5 },
          { number: 6 },
          { number: 7 },
          { number: 8 },
          { number: 9 },
          { number: 10 },
          { number: 11 },
          { number: 12 },
          { number: 13 },
          { number: 14 },
          { number: 15 },
          { number: 16 },
          { number: 17 },
          { number: 18 },
          { number: 19 },
        ])
        expect(rowsOf(path, 'SELECT * FROM pawl_machines')).toHaveLength(LIFECYCLES.length)
        expect(integrityOf(path)).toEqual(['ok'])
      }
    })
  })

  it('open, fill and close one file again and again, and none is ever refused', async () => {
    const path = join(freshFolder(), 'store.db')
    const perProcess = 15
    await withHelpers(OPENER, 4, async (helpers) => {
      const asked = helpers.map((helper, i) => {
        const ids = Array.from({ length: perProcess }, (_, n) => idOf(i * perProcess + n))
        return helper.ask<Told>({ kind: 'churn', path, ids })
      })
      const errors = (await Promise.all(asked)).flatMap(({ error }) => error ?? [])
      expect(errors).toEqual([])
    })
    await using store = await openSqliteStore({ path })
    const ids = (await allJobs(store)).map(({ id }) => id).sort()
    expect(ids).toEqual(Array.from({ length: 4 * perProcess }, (_, n) => idOf(n)))
  })

  it('enqueue one key 200 times at once, and there is one job', async () => {
    const path = join(freshFolder(), 'store.db')
    const answers = await withHelpers(OPENER, 4, (helpers) =>
      Promise.all(
        helpers.map((helper, i) => {
          const ids = Array.from({ length: 50 }, (_, n) => idOf(i * 50 + n))
          return helper.ask<{ answers: { kind: string; id: string }[] }>({
            ...{ kind: 'enqueueKey', path, ids, key: 'the one' },
          })
        }),
      ),
    )
    const all = answers.flatMap((told) => told.answers)
    expect(all).toHaveLength(200)
    expect(new Set(all.map(({ id }) => id)).size).toBe(1)
    expect(all.filter(({ kind }) => kind === 'created')).toHaveLength(1)
    expect(all.filter(({ kind }) => kind === 'existing')).toHaveLength(199)
    expect(rowsOf(path, 'SELECT id FROM pawl_jobs')).toEqual([{ id: all[0]?.id }])
    expect(rowsOf(path, 'SELECT seq FROM pawl_ledger')).toEqual([{ seq: 1 }])
  })
})

describe('a store that this release must not touch', OPERATING, () => {
  const refusals = [
    {
      what: 'a newer schema',
      sql: `INSERT INTO pawl_migrations VALUES (99, 'of a later release', 0)`,
      code: 'E_SCHEMA_TOO_NEW',
    },
    {
      what: 'an edited migration',
      sql: `UPDATE pawl_migrations SET checksum = 'other' WHERE number = 1`,
      code: 'E_SCHEMA_DRIFT',
    },
    {
      what: 'a missing record of a migration',
      sql: `UPDATE pawl_migrations SET number = 99, checksum = 'other' WHERE number = 1`,
      code: 'E_SCHEMA_TOO_NEW',
    },
  ]

  it.each(refusals)('is refused and left as it is: $what', async ({ sql, code }) => {
    const path = join(freshFolder(), 'store.db')
    await withHelpers(OPENER, 1, ([helper]) => closedStore(helper as Helper, path))
    execute(path, sql, 'PRAGMA wal_checkpoint(TRUNCATE)')
    const before = sha256Of(path)
    await expect(openSqliteStore({ path })).rejects.toMatchObject({ code })
    expect(sha256Of(path)).toBe(before)
  })

  it('is refused where its tables are not ours, and keeps its own', async () => {
    const path = join(freshFolder(), 'foreign.db')
    const rows = `INSERT INTO pawl_jobs VALUES ('precious')`
    execute(path, 'CREATE TABLE pawl_jobs (theirs TEXT)', rows)
    await expect(openSqliteStore({ path })).rejects.toMatchObject({ code: 'E_STORE_FAILED' })
    expect(rowsOf(path, 'SELECT * FROM pawl_jobs')).toEqual([{ theirs: 'precious' }])
    expect(rowsOf(path, 'SELECT name FROM sqlite_schema')).toEqual([{ name: 'pawl_jobs' }])
  })

  it('is taken where it belongs to another program, whose tables stay as they are', async () => {
    const path = join(freshFolder(), 'shared.db')
    execute(path, 'CREATE TABLE orders (id TEXT)', `INSERT INTO orders VALUES ('precious')`)
    const store = await openSqliteStore({ path })
    await store.close()
    expect(rowsOf(path, 'SELECT * FROM orders')).toEqual([{ id: 'precious' }])
  })

  it('is taken as it is where it was made by hand from what printSql prints', async () => {
    const path = join(freshFolder(), 'by-hand.db')
    execute(path, printSql())
    const before = rowsOf(path, 'SELECT * FROM pawl_migrations')
    const store = await openSqliteStore({ path })
    await store.close()
    expect(rowsOf(path, 'SELECT * FROM pawl_migrations')).toEqual(before)
  })
})

describe('a file that is no store', OPERATING, () => {
  const sqliteHeader = Buffer.from('SQLite format 3\0\x10\0\x01\x01\0\x40\x20\x20', 'latin1')
  const [unusable, malformed] = ['E_STORE_UNUSABLE', 'E_STORE_MALFORMED']
  const damaged = Buffer.concat([sqliteHeader, Buffer.alloc(8192, 7)])
  const foreign = [
    { what: 'a long text', bytes: Buffer.from('precious words\n'.repeat(1000)), code: unusable },
    { what: 'a few bytes', bytes: Buffer.from('hello'), code: unusable },
    { what: 'noise', bytes: Buffer.alloc(8192, 0xa5), code: unusable },
    { what: 'the header of a database alone', bytes: sqliteHeader, code: malformed },
    { what: 'a damaged database', bytes: damaged, code: malformed },
  ]

  it.each(foreign)('is refused and left as it is: $what', async ({ bytes, code }) => {
    const folder = freshFolder()
    const path = join(folder, 'foreign')
    writeFileSync(path, bytes)
    const before = sha256Of(path)
    await expect(openSqliteStore({ path })).rejects.toMatchObject({ code })
    expect(sha256Of(path)).toBe(before)
    expect(readdirSync(folder)).toEqual(['foreign'])
  })

  it('is refused where it is a folder, or stands in none', async () => {
    const folder = freshFolder()
    for (const path of [folder, join(folder, 'missing', 'store.db')]) {
      await expect(openSqliteStore({ path })).rejects.toMatchObject({ code: 'E_STORE_UNUSABLE' })
    }
    expect(readdirSync(folder)).toEqual([])
  })

  it('is refused where this user may not write', async () => {
    const folder = join(freshFolder(), 'locked')
    mkdirSync(folder)
    const path = join(folder, 'store.db')
    await withHelpers(OPENER, 1, ([helper]) => closedStore(helper as Helper, path))
    const before = sha256Of(path)
    chmodSync(join(folder, '..'), 0o755)
    chmodSync(path, 0o444)
    chmodSync(folder, 0o555)
    await withHelpers(OPENER, 1, async ([helper]) => {
      await helper?.ask({ kind: 'dropRights' })
      for (const name of ['store.db', 'new.db']) {
        const told = await helper?.ask<Told>({ kind: 'open', path: join(folder, name) })
        expect(told?.error).toMatchObject({ code: 'E_STORE_DENIED' })
      }
    })
    chmodSync(folder, 0o755)
    expect(readdirSync(folder)).toEqual(['store.db'])
    expect(sha256Of(path)).toBe(before)
  })
})

describe('a file that another process has locked', OPERATING, () => {
  const busyTimeoutMs = 100

  it('is opened and read if it is up to date, and written to once the lock is gone', async () => {
    const path = join(freshFolder(), 'store.db')
    await withHelpers(OPENER, 1, ([helper]) => closedStore(helper as Helper, path))
    await withHelpers(OPENER, 1, async ([helper]) => {
      await helper?.ask({ kind: 'lock', path })
      await using store = await openSqliteStore({ path, busyTimeoutMs })
      expect(await store.get(idOf(1))).toMatchObject({ state: 'queued' })
      await expect(store.promote(1)).rejects.toMatchObject({ code: 'E_STORE_BUSY' })
      await helper?.ask({ kind: 'unlock' })
      expect(await store.promote(1)).toBe(0)
    })
  })

  it('is answered StoreBusy after the time-out if it is not a store yet', async () => {
    const path = join(freshFolder(), 'users.db')
    execute(path, 'CREATE TABLE orders (id TEXT)')
    const before = sha256Of(path)
    await withHelpers(OPENER, 1, async ([helper]) => {
      await helper?.ask({ kind: 'lock', path })
      await expect(openSqliteStore({ path, busyTimeoutMs })).rejects.toMatchObject({
        code: 'E_STORE_BUSY',
      })
      expect(sha256Of(path)).toBe(before)
      await helper?.ask({ kind: 'unlock' })
      const store = await openSqliteStore({ path, busyTimeoutMs })
      await store.close()
    })
  })

  it('makes a write wait, then answers StoreBusy, with nothing written', async () => {
    const path = join(freshFolder(), 'store.db')
    await using store = await openSqliteStore({ path, busyTimeoutMs })
    await withHelpers(OPENER, 1, async ([helper]) => {
      await helper?.ask({ kind: 'lock', path })
      const paused = store.pauseQueue('main', { actor: 'client' })
      await expect(paused).rejects.toMatchObject({ code: 'E_STORE_BUSY' })
      expect((await store.counts()).lanes.ready).toBe(0)
      await helper?.ask({ kind: 'unlock' })
      expect(rowsOf(path, 'SELECT * FROM pawl_queues')).toEqual([])
      await store.pauseQueue('main', { actor: 'client' })
    })
  })
})
