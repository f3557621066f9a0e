// Two SQLite libraries on one file in one process release each other's locks, and lose what was
// committed. Pawl acknowledges nothing that could be lost in this way.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { standard } from 'pawl/rules'
import { openSqliteStore, StoreUnsafe, TxForeign } from 'pawl/sqlite'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { systemEnvironment } from '../../src/environment/system.ts'
import type { Store } from '../../src/stores/contract/store.ts'
import { loadDriver, type SqliteDriver } from '../../src/stores/sqlite/driver.ts'
import { countElsewhere, loadSecondLibrary } from './second-library.ts'

const environment = systemEnvironment()
let folder = ''
let second: SqliteDriver
let files = 0
let path = ''

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-second-'))
  second = loadSecondLibrary(folder)
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

beforeEach(() => {
  path = join(folder, `${++files}.db`)
})

function enqueue(store: Store, tx?: unknown) {
  const command = { jobId: environment.ids.next(), type: 'a', queue: 'q' }
  return store.enqueue([{ lifecycle: standard, command, input: '1' }], { tx })
}

/** A store with one acknowledged job. */
async function openWithJob(): Promise<Store> {
  const store = await openSqliteStore({ path, environment })
  await enqueue(store)
  return store
}

it('a handle of another library is refused with what to do instead', async () => {
  await using store = await openWithJob()
  const foreign = new second.DatabaseSync(':memory:')
  foreign.exec('BEGIN')
  const error = await enqueue(store, foreign).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(TxForeign)
  expect(error).toMatchObject({
    code: 'E_TX_FOREIGN',
    hint: expect.stringContaining('pawl.transaction'),
  })
  foreign.close()
  expect((await store.list({})).items).toHaveLength(1)
})

it('a handle whose class extends that of the library is accepted', async () => {
  await using store = await openWithJob()
  const own = new (class Own extends loadDriver().DatabaseSync {})(path)
  own.exec('BEGIN IMMEDIATE')
  await enqueue(store, own)
  own.exec('COMMIT')
  own.close()
  expect((await store.list({})).items).toHaveLength(2)
})

describe.skipIf(process.platform !== 'linux')('on Linux, where locks can be seen', () => {
  it('the bare libraries lose a row that was committed', () => {
    const one = new (loadDriver().DatabaseSync)(path)
    one.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE rows (n INTEGER)')
    const other = new second.DatabaseSync(path)
    other.exec('SELECT count(*) FROM rows')
    other.close()
    one.exec('INSERT INTO rows VALUES (1)')
    expect(one.prepare('SELECT count(*) AS n FROM rows').get()).toMatchObject({ n: 1 })
    expect(countElsewhere(path, 'rows')).toBe(0)
    one.close()
  })

  it('no job is acknowledged after a second library has closed the file', async () => {
    const store = await openWithJob()
    const other = new second.DatabaseSync(path)
    other.exec('SELECT count(*) FROM pawl_jobs')
    other.close()
    await expect(enqueue(store)).rejects.toThrow(StoreUnsafe)
    await expect(enqueue(store)).rejects.toThrow(/locks are gone/)
    await expect(store.counts()).rejects.toThrow(StoreUnsafe)
    await store.close()
    expect(countElsewhere(path, 'pawl_jobs')).toBe(1)
  })

  it('a second library is noticed while it has the file open, before it does harm', async () => {
    const store = await openWithJob()
    const other = new second.DatabaseSync(path)
    other.exec('SELECT count(*) FROM pawl_jobs')
    await expect(enqueue(store)).rejects.toThrow(/second SQLite library/)
    await store.close()
    other.close()
    expect(countElsewhere(path, 'pawl_jobs')).toBe(1)
  })

  it('a store is not opened on a file that a second library has open', async () => {
    await (await openWithJob()).close()
    const other = new second.DatabaseSync(path)
    other.exec('PRAGMA journal_mode = WAL')
    other.exec('CREATE TABLE theirs (n INTEGER)')
    await expect(openSqliteStore({ path, environment })).rejects.toThrow(StoreUnsafe)
    other.exec('INSERT INTO theirs VALUES (1)')
    expect(countElsewhere(path, 'theirs')).toBe(1)
    other.close()
  })

  it('no job is acknowledged after the file was read with node:fs', async () => {
    const store = await openWithJob()
    readFileSync(path)
    await expect(enqueue(store)).rejects.toThrow(StoreUnsafe)
    await store.close()
  })

  it('nothing of a transaction is written whose function used a second library', async () => {
    const store = await openWithJob()
    const misuse = store.transaction(async (tx) => {
      await enqueue(store, tx)
      const other = new second.DatabaseSync(path)
      other.exec('SELECT count(*) FROM pawl_jobs')
      other.close()
    })
    await expect(misuse).rejects.toThrow(StoreUnsafe)
    await store.close()
    expect(countElsewhere(path, 'pawl_jobs')).toBe(1)
  })

  it('handles, stores and threads of the same library come and go without harm', async () => {
    const { DatabaseSync } = loadDriver()
    const first = await openWithJob()
    const store = await openSqliteStore({ path, environment })
    for (let i = 0; i < 3; i++) {
      const own = new DatabaseSync(path)
      own.exec('BEGIN IMMEDIATE')
      await enqueue(store, own)
      own.exec('COMMIT')
      own.close()
    }
    await first.close()
    await closeInThread(path)
    await enqueue(store)
    await store.close()
    expect(countElsewhere(path, 'pawl_jobs')).toBe(5)
  })
})

/** Opens and closes the file in a thread of this process, with the same library. */
function closeInThread(file: string): Promise<void> {
  const code = `
    const { createRequire } = require('node:module')
    const { workerData: { file, from } } = require('node:worker_threads')
    const sqlite = process.getBuiltinModule('node:sqlite')
      ?? createRequire(from)('@photostructure/sqlite')
    const database = new sqlite.DatabaseSync(file)
    database.exec('SELECT count(*) FROM pawl_jobs')
    database.close()`
  const workerData = { file, from: import.meta.url }
  const thread = new Worker(code, { eval: true, workerData, execArgv: [] })
  return new Promise((resolve, reject) => {
    thread.on('error', reject)
    thread.on('exit', () => resolve())
  })
}
