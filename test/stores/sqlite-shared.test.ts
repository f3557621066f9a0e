// Several stores in one process: on one database in memory, and inside each other's commits.
import { standard } from 'pawl/rules'
import { type Held, openSqliteStore, type Store, UseTx } from 'pawl/sqlite'
import { expect, it } from 'vitest'
import { loadDriver } from '../../src/stores/sqlite/driver.ts'

const ID = '00000000-0000-7000-9000-000000000001'
const OTHER = '00000000-0000-7000-9000-000000000002'
const itemOf = (jobId: string) => ({
  lifecycle: standard,
  command: { jobId, type: 'order', queue: 'main' },
  input: '{}',
})

/** A store with a job that is held. */
async function holding(store: Store): Promise<Held> {
  await store.enqueue([itemOf(ID)])
  const [held] = await store.claim({ worker: 'w', limit: 1, leaseMs: 60_000, start: true })
  return held as Held
}

it('stores of one name in memory see the same jobs', async () => {
  const path = 'file:/shared-by-name?vfs=memdb'
  await using one = await openSqliteStore({ path })
  await using two = await openSqliteStore({ path })
  await one.enqueue([itemOf(ID)])
  expect((await two.get(ID))?.id).toBe(ID)
})

it('a store works through the driver that it is given', async () => {
  const opened: string[] = []
  const { DatabaseSync } = loadDriver()
  const driver = {
    DatabaseSync: class extends DatabaseSync {
      constructor(path: string, options?: { timeout?: number }) {
        super(path, options)
        opened.push(path)
      }
    },
  }
  await using store = await openSqliteStore({ path: ':memory:', driver })
  await store.enqueue([itemOf(ID)])
  expect(opened).toEqual([':memory:'])
})

it('a commit may use other stores, but neither its own nor one around it', async () => {
  await using outer = await openSqliteStore({ path: ':memory:' })
  await using inner = await openSqliteStore({ path: ':memory:' })
  const [outerHeld, innerHeld] = [await holding(outer), await holding(inner)]
  const answer = await outer.commit(outerHeld, async () => {
    await expect(outer.enqueue([itemOf(OTHER)])).rejects.toThrow(UseTx)
    await inner.commit(innerHeld, async () => {
      await expect(outer.enqueue([itemOf(OTHER)])).rejects.toThrow(UseTx)
      await expect(inner.enqueue([itemOf(OTHER)])).rejects.toThrow(UseTx)
      return '1'
    })
    const [enqueued] = await inner.enqueue([itemOf(OTHER)])
    return JSON.stringify(enqueued?.kind)
  })
  expect(answer).toMatchObject({ kind: 'done', result: '"created"' })
})
