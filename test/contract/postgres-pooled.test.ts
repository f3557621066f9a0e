// Behind a pooler in transaction mode, where each transaction may go to another server process, the
// PostgreSQL store passes the contract as well, and knows where it is.
import type { Logger } from 'pawl'
import { standard } from 'pawl/rules'
import { testEnvironment } from 'pawl/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Store } from '../../src/stores/contract/store.ts'
import { openPostgresStore } from '../../src/stores/postgres/open.ts'
import type { PostgresOptions } from '../../src/stores/postgres/options.ts'
import { freshSchema, sharedPostgres } from '../support/postgres/databases.ts'
import { findPgbouncer, type Pgbouncer, startPgbouncer } from '../support/postgres/pgbouncer.ts'
import { postgresContract } from './postgres-bench.ts'

const skipped = findPgbouncer() === undefined ? ' (skipped: pgbouncer is not installed)' : ''

async function newPooler(): Promise<Pgbouncer> {
  const pooler = await startPgbouncer({ url: sharedPostgres(), poolSize: 3 })
  if (pooler === undefined) throw new Error('pgbouncer has gone')
  return pooler
}

describe.skipIf(skipped)(`the PostgreSQL store behind pgbouncer${skipped}`, () => {
  postgresContract(async () => {
    const pooler = await newPooler()
    return { url: sharedPostgres(), storeUrl: pooler.url, leave: () => pooler.stop() }
  })
})

describe.skipIf(skipped)(`a pooler in between${skipped}`, () => {
  async function throughPooler(
    more: PostgresOptions = {},
  ): Promise<(url?: string) => Promise<Store>> {
    const pooler = await newPooler()
    onTestFinished(() => pooler.stop())
    const schema = freshSchema(sharedPostgres())
    return async (url = pooler.url) => {
      const store = await openPostgresStore({ connectionString: url, schema, ...more })
      onTestFinished(() => store.close())
      return store
    }
  }

  it('is noticed, and said once', async () => {
    const events: unknown[] = []
    const note = (fields: object) => events.push((fields as { event?: string }).event)
    const logger = { debug: note, info: note, warn: note, error: note } as Logger
    const open = await throughPooler({ logger })
    const store = await open()
    await Promise.all(Array.from({ length: 20 }, () => store.counts()))
    expect(events).toEqual(['store.pooler_found'])
    events.length = 0
    await (await open(sharedPostgres())).counts()
    expect(events).toEqual([])
  })

  it('makes idle workers poll, because no notification would reach them', async () => {
    const environment = testEnvironment()
    const open = await throughPooler({ environment, clock: 'environment' })
    const [store, other] = [await open(), await open()]
    let hints = 0
    store.onWake(() => {
      hints++
    })
    const command = { jobId: environment.ids.next(), type: 'a', queue: 'q' }
    await other.enqueue([{ lifecycle: standard, command, input: '1' }])
    expect(hints).toBe(0)
    environment.advance(200)
    expect(hints).toBe(1)
    expect(await store.claim({ worker: 'w', limit: 1, leaseMs: 1000, start: true })).toHaveLength(1)
    environment.advance(1000)
    expect(hints).toBe(6)
  })
})
