// The SQLite store passes the contract of stores: on a file, and in memory.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Lifecycle } from 'pawl'
import { afterAll, describe, it } from 'vitest'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { type OpenStore, type OwnTable, storeContract } from './store/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'pawl-contract-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const TABLE = 'CREATE TABLE IF NOT EXISTS own_texts (text TEXT NOT NULL) STRICT'

const ownTable: OwnTable = {
  async add(tx, text) {
    await tx.query(TABLE)
    await tx.query('INSERT INTO own_texts VALUES (?)', [text])
  },
  async all(tx) {
    await tx.query(TABLE)
    const rows = await tx.query('SELECT text FROM own_texts ORDER BY rowid')
    return (rows as { text: string }[]).map(({ text }) => text)
  },
}

const openAt =
  (path: () => string): OpenStore =>
  async (environment) => {
    const place = path()
    const open = (lifecycles?: readonly Lifecycle[]) =>
      openSqliteStore({ path: place, environment, ...(lifecycles && { lifecycles }) })
    return {
      store: await open(),
      advance: environment.advance,
      ownTable,
      reopen: place === ':memory:' ? undefined : open,
    }
  }

let files = 0

describe('the SQLite store on a file', () => {
  storeContract({ describe, it, open: openAt(() => join(folder, `${++files}.db`)) })
})

describe('the SQLite store in memory', () => {
  storeContract({ describe, it, open: openAt(() => ':memory:') })
})
