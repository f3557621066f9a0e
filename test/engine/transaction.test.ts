// `pawl.transaction` on both databases: the user's own tables by plain SQL, by Kysely and by
// Drizzle, together with new jobs; and what the compiler refuses as a transaction to join.
import { sql } from 'drizzle-orm'
import { drizzle as drizzleOnPostgres } from 'drizzle-orm/node-postgres'
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely'
import { defineJob, type Pawl, type Transaction, typed } from 'pawl'
import { createTestPawl } from 'pawl/testing'
import type pg from 'pg'
import { describe, expect, it, vi } from 'vitest'
import { drizzleOn, kyselyOn } from '../../examples/05-transactions/builders.ts'
import { brokenPromises } from '../processes/inspect.ts'
import { PLACES } from './processes/places.ts'

const timeout = 30_000
const follow = defineJob({ name: 'follow', input: typed<string>() })

/** Books a row by each way that there is, on either database. */
const WAYS: Readonly<
  Record<string, (tx: Transaction, job: string, isPostgres: boolean) => unknown>
> = {
  'plain SQL': (tx, job, isPostgres) =>
    tx.query(`INSERT INTO bookings VALUES (${isPostgres ? '$1, $2' : '?, ?'})`, [job, 1]),
  Kysely: (tx, job, isPostgres) => {
    if (!isPostgres) {
      const kysely = kyselyOn<{ bookings: { job: string; attempt: number } }>(tx)
      return kysely.insertInto('bookings').values({ job, attempt: 1 }).execute()
    }
    const pool = { connect: async () => tx.raw as pg.PoolClient, end: async () => {} }
    const kysely = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) })
    return kysely.executeQuery(CompiledQuery.raw('INSERT INTO bookings VALUES ($1, 1)', [job]))
  },
  Drizzle: (tx, job, isPostgres) => {
    const statement = sql`INSERT INTO bookings VALUES (${job}, ${1})`
    if (!isPostgres) return drizzleOn(tx).run(statement)
    return drizzleOnPostgres({ client: tx.raw as pg.PoolClient }).execute(statement)
  },
}

describe.each(PLACES)('on $name', ({ name, place }) => {
  const isPostgres = name === 'PostgreSQL'

  it.each(Object.entries(WAYS))(
    'rows and jobs are committed together: %s',
    {
      timeout,
    },
    async (way, book) => {
      const { pawl, bookings } = await place()
      // A value may begin like a statement that is refused.
      const text = `commit ${way}`
      const handle = await pawl.transaction(async (tx) => {
        await book(tx, text, isPostgres)
        return pawl.enqueue(follow, text, { tx })
      })
      expect(await bookings()).toEqual([{ job: text, attempt: 1 }])
      expect(await handle.get()).toMatchObject({ type: 'follow' })
      const failing = pawl.transaction(async (tx) => {
        await book(tx, 'lost', isPostgres)
        await pawl.enqueue(follow, 'lost', { tx })
        throw new Error('no')
      })
      await expect(failing).rejects.toThrow('no')
      expect([await bookings(), (await pawl.store.list({})).items]).toMatchObject([[{}], [{}]])
      expect(await brokenPromises(pawl.store)).toEqual([])
    },
  )

  it('verbs without the tx, and transactions inside of it, are refused', { timeout }, async () => {
    const { pawl } = await place()
    await pawl.transaction(async (tx) => {
      await expect(pawl.enqueue(follow, 'a')).rejects.toMatchObject({ code: 'E_USE_TX' })
      const nested = pawl.transaction(() => 1)
      await expect(nested).rejects.toMatchObject({ code: 'E_USE_TX' })
      await pawl.enqueue(follow, 'b', { tx })
    })
    expect((await pawl.store.list({})).items).toHaveLength(1)
  })

  it('many at the same time are all kept, beside other writes', { timeout }, async () => {
    const { pawl, bookings } = await place()
    const writes = Array.from({ length: 30 }, (_, i) =>
      i % 3 === 0
        ? pawl.enqueue(follow, `${i}`)
        : pawl.transaction(async (tx) => {
            await WAYS['plain SQL']?.(tx, `${i}`, isPostgres)
            await pawl.enqueue(follow, `${i}`, { tx })
          }),
    )
    await Promise.all(writes)
    expect(await bookings()).toHaveLength(20)
    expect((await pawl.store.counts()).lanes.ready).toBe(30)
    expect(await brokenPromises(pawl.store)).toEqual([])
  })

  it('a text cannot end the transaction behind its first statement', { timeout }, async () => {
    const { pawl, bookings } = await place()
    const insert = `INSERT INTO bookings VALUES ('a', 1)`
    const raw = (tx: Transaction, sql: string) => {
      const handle = tx.raw as { exec(sql: string): void; query(sql: string): Promise<unknown> }
      return isPostgres ? handle.query(sql) : handle.exec(sql)
    }
    for (const control of ['COMMIT', 'COMMIT; BEGIN', '/* ; */ END']) {
      const going = pawl.transaction(async (tx) => {
        const owned = { code: 'E_TX_OWNED' }
        await expect(tx.query(`${insert}; ${control}`)).rejects.toMatchObject(owned)
        expect(() => raw(tx, `${insert}; ${control}`)).toThrow(expect.objectContaining(owned))
        await tx.query(insert)
        throw new Error('no')
      })
      await expect(going).rejects.toThrow('no')
    }
    const two = pawl.transaction((tx) => tx.query(`${insert}; ${insert}`))
    await expect(two).rejects.toMatchObject({ code: 'E_COMMAND_INVALID' })
    expect(await bookings()).toEqual([])
  })

  it('no job joins a transaction that the database has ended', { timeout }, async () => {
    const { pawl } = await place()
    const breaking = isPostgres
      ? 'INSERT INTO bookings VALUES (NULL, NULL)'
      : 'INSERT OR ROLLBACK INTO bookings VALUES (NULL, NULL)'
    const going = pawl.transaction(async (tx) => {
      await tx.query(breaking).catch(() => {})
      await expect(pawl.enqueue(follow, 'a', { tx })).rejects.toThrow()
      await expect(pawl.enqueueMany(follow, [{ input: 'b' }], { tx })).rejects.toThrow()
    })
    await expect(going).rejects.toMatchObject({ code: 'E_TX_BROKEN' })
    expect((await pawl.store.list({})).items).toEqual([])
  })

  it('a tx of another store is refused', { timeout }, async () => {
    const [one, other] = [await place(), await place()]
    await one.pawl.transaction(async (tx) => {
      const joining = other.pawl.enqueue(follow, 'a', { tx })
      await expect(joining).rejects.toMatchObject({ code: 'E_TX_INVALID' })
    })
    expect((await other.pawl.store.list({})).items).toEqual([])
  })
})

it('the test kit has it, and drains what has joined', async () => {
  const ran = vi.fn()
  const job = defineJob({ name: 'seen', input: typed<string>(), run: ({ input }) => ran(input) })
  await using test = await createTestPawl({ jobs: [job] })
  await test.query('CREATE TABLE notes (text TEXT)')
  await test.pawl.transaction(async (tx) => {
    await tx.query('INSERT INTO notes VALUES (?)', ['kept'])
    await test.pawl.enqueue(job, 'joined', { tx })
  })
  await test.drain()
  expect(ran.mock.calls).toEqual([['joined']])
  expect(await test.query('SELECT text FROM notes')).toEqual([{ text: 'kept' }])
})

/** Compiled, and never called. */
function compiled(_use: (pawl: Pawl) => unknown): void {}

it('the compiler refuses what cannot be joined', () => {
  const sqlite = { open() {}, exec(_sql: string) {}, prepare: (_sql: string) => ({}) }
  const client = null as unknown as pg.PoolClient
  compiled((pawl) => pawl.enqueue(follow, 'a', { tx: sqlite }))
  compiled((pawl) => pawl.enqueue(follow, 'a', { tx: client }))
  compiled((pawl) => pawl.transaction((tx) => pawl.enqueue(follow, 'a', { tx })))
  // @ts-expect-error: a Database of better-sqlite3 has a property open, and no method.
  compiled((pawl) => pawl.enqueue(follow, 'a', { tx: { ...sqlite, open: true } }))
  // @ts-expect-error: a pool is not in a transaction, and neither is a text.
  compiled((pawl) => pawl.enqueue(follow, 'a', { tx: 'tx' }))
  // @ts-expect-error: effects belong to the commit of a job.
  compiled((pawl) => pawl.transaction((tx) => tx.effect('mail')))
})
