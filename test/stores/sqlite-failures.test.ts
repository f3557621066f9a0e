// What SQLite fails with reaches callers as an error of Pawl's (P16), and a transaction that it
// ends by itself ends the commit that ran in it (P3).
import { join } from 'node:path'
import { standard } from 'pawl/rules'
import { type CommitTx, type Held, openSqliteStore, type Store } from 'pawl/sqlite'
import { expect, it } from 'vitest'
import { freshFolder } from '../processes/folder.ts'
import { execute, rowsOf } from '../processes/inspect.ts'

const ID = '00000000-0000-7000-9000-000000000001'

interface Bed {
  readonly path: string
  readonly store: Store
  readonly held: Held
}

/** A store with one job, which is held, and tables of the user's own. */
async function bed(): Promise<Bed> {
  const path = join(freshFolder(), 'store.db')
  const store = await openSqliteStore({ path })
  execute(path, 'CREATE TABLE users (name TEXT PRIMARY KEY) STRICT')
  const command = { jobId: ID, type: 'order', queue: 'main' }
  await store.enqueue([{ lifecycle: standard, command, input: '{}' }])
  const [held] = await store.claim({ worker: 'w', limit: 1, leaseMs: 60_000, start: true })
  return { path, store, held: held as Held }
}

/** Fails, and takes the whole transaction with it; the function goes on as if nothing were. */
async function rollBackUnnoticed(tx: CommitTx): Promise<void> {
  await tx.query(`INSERT INTO users VALUES ('ann')`)
  await tx.query(`INSERT OR ROLLBACK INTO users VALUES ('ann')`).catch(() => {})
}

async function triggersOf(store: Store): Promise<string[]> {
  return (await store.facts(ID)).map(({ trigger }) => trigger)
}

it('a commit that SQLite has rolled back commits nothing, if its function goes on', async () => {
  const { path, store, held } = await bed()
  const work = async (tx: CommitTx) => {
    await rollBackUnnoticed(tx)
    return '"done"'
  }
  await expect(store.commit(held, work)).rejects.toMatchObject({ code: 'E_TX_BROKEN' })
  expect(await triggersOf(store)).toEqual(['create', 'claim'])
  const again = await store.commit(held, async (tx) => {
    await tx.query(`INSERT INTO users VALUES ('bob')`)
    return '"done"'
  })
  expect(again.kind).toBe('done')
  expect(rowsOf(path, 'SELECT name FROM users')).toEqual([{ name: 'bob' }])
  await store.close()
})

it.each([
  ['query', (tx: CommitTx) => tx.query(`INSERT INTO users VALUES ('late')`)],
  [
    'raw handle',
    async (tx: CommitTx) => (tx.raw as { exec(sql: string): void }).exec(`DELETE FROM users`),
  ],
])('nothing is written by its %s after SQLite has ended a commit', async (_name, write) => {
  const { path, store, held } = await bed()
  execute(path, `INSERT INTO users VALUES ('before')`)
  const refused: unknown[] = []
  const work = async (tx: CommitTx) => {
    await rollBackUnnoticed(tx)
    await write(tx).catch((error: unknown) => refused.push(error))
    return '"done"'
  }
  await expect(store.commit(held, work)).rejects.toMatchObject({ code: 'E_TX_BROKEN' })
  expect(refused).toMatchObject([{ code: 'E_TX_BROKEN' }])
  expect(rowsOf(path, 'SELECT name FROM users')).toEqual([{ name: 'before' }])
  await store.close()
})

it('a commit whose end is refused is a typed error, and nothing of it is true', async () => {
  const { path, store, held } = await bed()
  const reference = 'TEXT REFERENCES users (name) DEFERRABLE INITIALLY DEFERRED'
  execute(path, `CREATE TABLE orders (name ${reference}) STRICT`)
  const work = async (tx: CommitTx) => {
    await tx.query(`INSERT INTO orders VALUES ('nobody')`)
    return '"done"'
  }
  await expect(store.commit(held, work)).rejects.toMatchObject({ code: 'E_STORE_FAILED' })
  expect(await triggersOf(store)).toEqual(['create', 'claim'])
  expect(rowsOf(path, 'SELECT * FROM orders')).toEqual([])
  await store.close()
})

it('what a function throws reaches its caller as it is', async () => {
  const { store, held } = await bed()
  const own = new Error('mine')
  const work = () => Promise.reject(own)
  await expect(store.commit(held, work)).rejects.toBe(own)
  await store.close()
})

it('reads and commits fail with a typed error where the tables are gone', async () => {
  const { path, store, held } = await bed()
  execute(path, 'ALTER TABLE pawl_ledger RENAME TO gone')
  const failed = { code: 'E_STORE_FAILED' }
  await expect(store.facts(ID)).rejects.toMatchObject(failed)
  await expect(store.commit(held, () => '"done"')).rejects.toMatchObject(failed)
  await store.close()
})
