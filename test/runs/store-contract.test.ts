// The contract of journals, on tables in SQLite and in PostgreSQL.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openPostgresStore } from 'pawl/postgres'
import { openStoreJournal } from 'pawl/runs'
import { openSqliteStore } from 'pawl/sqlite'
import { afterAll, describe, it } from 'vitest'
import type { Store } from '../../src/stores/contract/store.ts'
import { journalContract, type OpenJournal } from '../contract/journal/index.ts'
import { sharedPostgres } from '../support/postgres/databases.ts'

const folder = mkdtempSync(join(tmpdir(), 'pawl-runs-'))
const opened: Store[] = []
let number = 0

afterAll(async () => {
  for (const store of opened) await store.close()
  rmSync(folder, { recursive: true, force: true })
})

const openIn =
  (open: (environment: Parameters<OpenJournal>[0]) => Promise<Store>): OpenJournal =>
  async (environment) => {
    const store = await open(environment)
    opened.push(store)
    const again = async () => openStoreJournal({ store, environment })
    return { journal: await again(), again, advance: (ms) => environment.advance(ms) }
  }

describe('tables in SQLite', () => {
  const open = openIn((environment) =>
    openSqliteStore({ path: join(folder, `${number++}.db`), environment }),
  )
  journalContract({ describe, it, open })
})

describe('tables in PostgreSQL', () => {
  const open = openIn((environment) => {
    const schema = `runs_${process.pid}_${number++}`
    const connectionString = sharedPostgres()
    const options = { connectionString, schema, environment, connections: 3 } as const
    return openPostgresStore({ ...options, clock: 'environment', durability: 'relaxed' })
  })
  journalContract({ describe, it, open })
})
