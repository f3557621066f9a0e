// Jobs that are enqueued in the user's own transaction stand or fall with it.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { standard } from 'pawl/rules'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemEnvironment } from '../../src/environment/system.ts'
import type { Store } from '../../src/stores/contract/store.ts'
import { type Database, loadDriver } from '../../src/stores/sqlite/driver.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'

const environment = systemEnvironment()
let folder = ''
let store: Store
let own: Database

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-join-'))
  store = await openSqliteStore({ path: join(folder, 'a.db'), environment })
  own = open('a.db')
  own.exec('CREATE TABLE orders (id TEXT PRIMARY KEY)')
})

afterEach(async () => {
  own.close()
  await store.close()
  rmSync(folder, { recursive: true })
})

function open(name: string): Database {
  const { DatabaseSync } = loadDriver()
  return new DatabaseSync(join(folder, name))
}

function enqueue(tx: unknown, key?: string) {
  const command = { jobId: environment.ids.next(), type: 'a', queue: 'q', ...(key && { key }) }
  return store.enqueue([{ lifecycle: standard, command, input: '1' }], { tx })
}

const jobs = async () => (await store.list({})).items.length
const orders = () => own.prepare('SELECT count(*) AS n FROM orders').get()

describe('a job that is enqueued in the transaction of its user', () => {
  it('is there when that commits, with the writes of the user, and not before', async () => {
    own.exec('BEGIN')
    own.prepare('INSERT INTO orders VALUES (?)').run('o-1')
    expect(await enqueue(own)).toMatchObject([{ kind: 'created' }])
    expect(await jobs()).toBe(0)
    own.exec('COMMIT')
    expect([await jobs(), orders()]).toMatchObject([1, { n: 1 }])
  })

  it('was never there when that rolls back', async () => {
    own.exec('BEGIN IMMEDIATE')
    own.prepare('INSERT INTO orders VALUES (?)').run('o-1')
    await enqueue(own)
    own.exec('ROLLBACK')
    expect([await jobs(), orders()]).toMatchObject([0, { n: 0 }])
  })

  it('of a lifecycle without its row is a typed refusal, of which nothing is left', async () => {
    own.exec('PRAGMA foreign_keys = OFF')
    own.exec("UPDATE pawl_machines SET name = 'oops' WHERE name = 'standard'")
    own.exec('UPDATE pawl_machines SET id = 99 WHERE id = 1')
    own.exec('PRAGMA foreign_keys = ON')
    own.exec('BEGIN')
    own.prepare('INSERT INTO orders VALUES (?)').run('o-1')
    const refused = { kind: 'rejected', error: { code: 'E_MACHINE_DAMAGED' } }
    expect(await enqueue(own)).toMatchObject([refused])
    own.exec('COMMIT')
    expect([await jobs(), orders()]).toMatchObject([0, { n: 1 }])
  })

  it('is claimed and committed like any other', async () => {
    own.exec('BEGIN')
    await enqueue(own, 'k')
    own.exec('COMMIT')
    const [held] = await store.claim({ worker: 'w', limit: 1, leaseMs: 60_000, start: true })
    if (held === undefined) throw new Error('nothing was claimed')
    expect(await store.commit(held, () => '1')).toMatchObject({ kind: 'done' })
    expect(await store.getByKey('a', 'k')).toMatchObject({ state: 'succeeded' })
  })

  it('finds a key that is taken', async () => {
    await enqueue(undefined, 'k')
    own.exec('BEGIN')
    expect(await enqueue(own, 'k')).toMatchObject([{ kind: 'existing' }])
    own.exec('COMMIT')
  })
})

describe('a transaction is refused, and nothing is written', () => {
  it('where it is no handle of a database', async () => {
    for (const tx of [null, 7, 'tx', {}, { prepare: 1 }]) {
      await expect(enqueue(tx)).rejects.toMatchObject({ code: 'E_TX_INVALID' })
    }
    expect(await jobs()).toBe(0)
  })

  it('where it was not begun, and is left as it was', async () => {
    await expect(enqueue(own)).rejects.toMatchObject({ code: 'E_TX_INVALID' })
    own.exec('BEGIN')
    own.exec('COMMIT')
    expect(await jobs()).toBe(0)
  })

  it('where it is of another file, or of one in memory', async () => {
    const { DatabaseSync } = loadDriver()
    const others = [open('b.db'), new DatabaseSync(':memory:')]
    for (const other of others) {
      other.exec('BEGIN')
      await expect(enqueue(other)).rejects.toMatchObject({ code: 'E_TX_INVALID' })
      other.exec('ROLLBACK')
      other.close()
    }
  })
})
