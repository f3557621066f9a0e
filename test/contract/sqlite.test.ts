// The SQLite store passes the contract of stores: on a file, and in memory.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Lifecycle } from 'pawl'
import { afterAll, describe, it } from 'vitest'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { isProof } from '../support/extent.ts'
import { writeStoreFile } from '../support/sqlite-file.ts'
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
    if (place !== ':memory:') await writeStoreFile(place)
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

/** The half of the suite that asks for no other statements than the rest. */
const MANY_VALUES = 'hostile values'

/** Each theme runs once in `npm test`, and in both places in `npm run prove`. */
const only = (wanted: (theme: string) => boolean) => (theme: string, body: () => void) => {
  if (isProof || wanted(theme)) describe(theme, body)
}

describe('the SQLite store on a file', () => {
  const open = openAt(() => join(folder, `${++files}.db`))
  storeContract({ describe: only((theme) => theme !== MANY_VALUES), it, open })
})

describe('the SQLite store in memory', () => {
  const open = openAt(() => ':memory:')
  storeContract({ describe: only((theme) => theme === MANY_VALUES), it, open })
})
