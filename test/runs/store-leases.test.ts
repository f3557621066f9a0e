// One writer in a store: a lease with a fence, on both databases. Whoever lost the run changes
// nothing, and is told.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openPostgresStore } from 'pawl/postgres'
import { exportRun, importRun, type Journal, openFolderJournal, openStoreJournal } from 'pawl/runs'
import { openSqliteStore } from 'pawl/sqlite'
import { type TestEnvironment, testEnvironment } from 'pawl/testing'
import pg from 'pg'
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Store } from '../../src/stores/contract/store.ts'
import { openSqlite } from '../../src/stores/sqlite/store.ts'
import { JournalBench } from '../contract/journal/bench.ts'
import { sharedPostgres } from '../support/postgres/databases.ts'
import { AUTHOR, all, applyCommand, factsOf, failureFacts } from './support.ts'

const folder = mkdtempSync(join(tmpdir(), 'pawl-leases-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Opened {
  readonly store: Store
  /** Runs a statement behind the back of the store; @ is what its tables are called by. */
  readonly vandalise: (sql: string) => Promise<unknown>
}

let number = 0
const PLACES: Record<string, (environment: TestEnvironment) => Promise<Opened>> = {
  async SQLite(environment) {
    const path = join(folder, `${number++}.db`)
    const { store, query } = await openSqlite({ path, environment })
    return { store, vandalise: (sql) => query(sql.replaceAll('@', 'pawl_')) }
  },
  async PostgreSQL(environment) {
    const schema = `leases_${process.pid}_${number++}`
    const connectionString = sharedPostgres()
    const clock = 'environment'
    const store = await openPostgresStore({ connectionString, schema, environment, clock })
    const vandalise = async (sql: string) => {
      const client = new pg.Client({ connectionString })
      await client.connect()
      try {
        return await client.query(sql.replaceAll('@', `${schema}.`))
      } finally {
        await client.end()
      }
    }
    return { store, vandalise }
  },
}

describe.each(Object.keys(PLACES))('a run in %s', (kind) => {
  let environment: TestEnvironment
  let opened: Opened
  let one: Journal
  let two: Journal

  beforeEach(async () => {
    environment = testEnvironment()
    opened = await (PLACES[kind] as (typeof PLACES)['SQLite'])(environment)
    one = openStoreJournal({ store: opened.store, environment })
    two = openStoreJournal({ store: opened.store, environment })
  })

  afterEach(async () => {
    await one.close().catch(() => {})
    await two.close().catch(() => {})
    await opened.store.close()
  })

  const create = () => one.create('run-1', factsOf(null, { kind: 'create' }), AUTHOR)
  const example = async () => {
    const again = async () => two
    await new JournalBench(environment, { journal: one, again, advance: () => {} }).example('run-1')
  }
  it('stays held as long as its holder lives', async () => {
    const renewals = vi.spyOn(opened.store.runs, 'renew')
    const writer = await create()
    for (let i = 1; i <= 20; i++) {
      environment.advance(10_000)
      expect(renewals).toHaveBeenCalledTimes(i)
      await renewals.mock.results[i - 1]?.value
      await new Promise((turn) => setImmediate(turn))
    }
    await expect(two.open('run-1', AUTHOR)).rejects.toMatchObject({ code: 'E_RUN_HELD' })
    await applyCommand(writer, { kind: 'move', to: 'CLONED_INPUTS' })
    expect(writer.signal.aborted).toBe(false)
  })

  it('whose holder stopped renewing is taken over; the old holder changes nothing', async () => {
    const late = await create()
    // The clock moves without its timers: the process was frozen.
    environment.clock.advance(30_000)
    const next = await two.open('run-1', AUTHOR)
    await applyCommand(next, { kind: 'move', to: 'CLONED_INPUTS' })
    const before = await all((await one.read('run-1')).lines())
    const moving = applyCommand(late, { kind: 'move', to: 'CLONED_INPUTS' })
    await expect(moving).rejects.toMatchObject({ code: 'E_RUN_LOST' })
    expect(late.signal.reason).toMatchObject({ code: 'E_RUN_LOST' })
    expect(late.run.run_state).toBe('CREATED')
    const again = late.append(factsOf(late.run, { kind: 'move', to: 'CLONED_INPUTS' }), AUTHOR)
    await expect(again).rejects.toMatchObject({ code: 'E_JOURNAL_CLOSED' })
    await late.close()
    expect(await all((await one.read('run-1')).lines())).toEqual(before)
    await applyCommand(next, { kind: 'move', to: 'INGESTED' })
  })

  it('is not written under an expired lease, even if no other process holds it', async () => {
    const late = await create()
    environment.clock.advance(30_000)
    const writing = late.writeArtifact('plan', Buffer.from('plan'))
    await expect(writing).rejects.toMatchObject({ code: 'E_RUN_LOST' })
    expect(await (await one.read('run-1')).holder()).toBeUndefined()
  })

  it('aborts the holder’s signal if a renewal comes too late', async () => {
    const late = await create()
    environment.clock.advance(30_000)
    const lost = new Promise((heard) => late.signal.addEventListener('abort', heard))
    environment.advance(0)
    await lost
    expect(late.signal.reason).toMatchObject({ code: 'E_RUN_LOST' })
  })

  it('refuses changes and deletions of its lines', async () => {
    await example()
    for (const sql of [
      "UPDATE @run_events SET line = 'x' WHERE seq = 2",
      'DELETE FROM @run_events WHERE seq = 2',
      'UPDATE @runs SET last_seq = 1',
    ]) {
      await expect(opened.vandalise(sql)).rejects.toThrow(/P8/)
    }
    expect(await one.verify('run-1')).toEqual([])
  })

  it('with removed lines is damaged, and can be failed', async () => {
    await example()
    const trigger = kind === 'SQLite' ? 'pawl_run_events_are_never_deleted' : undefined
    const off = trigger ? `DROP TRIGGER ${trigger}` : 'ALTER TABLE @run_events DISABLE TRIGGER USER'
    await opened.vandalise(off)
    const last = (await one.peek('run-1'))?.last_seq as number
    await opened.vandalise(`DELETE FROM @run_events WHERE seq = ${last}`)
    const damage = { code: 'E_RUN_LOG_DAMAGED', damage: { line: last } }
    await expect(one.open('run-1', AUTHOR)).rejects.toMatchObject(damage)
    await expect((await two.read('run-1')).replay()).rejects.toMatchObject(damage)
    await opened.vandalise('DELETE FROM @run_events WHERE seq = 4')
    const { run } = await one.failDamaged('run-1', (left) => failureFacts(left), AUTHOR)
    expect(run).toMatchObject({ run_state: 'FAILED', last_seq: 3 + 3 })
    expect((await (await two.read('run-1')).replay()).run).toEqual(run)
    expect(await one.verify('run-1')).toMatchObject([{ kind: 'log', details: { recorded: true } }])
  })

  it('with a changed snapshot gets it back', async () => {
    await example()
    const before = await one.peek('run-1')
    await opened.vandalise("UPDATE @runs SET snapshot = '{}'")
    expect(await one.peek('run-1')).toBeUndefined()
    await (await one.open('run-1', AUTHOR)).close()
    expect(await one.peek('run-1')).toEqual(before)
  })

  it('goes to a folder and back without a byte of difference', async () => {
    await example()
    const bundle = await all(exportRun(one, 'run-1'))
    await using files = await openFolderJournal({ path: join(folder, `runs-${number++}`) })
    expect(await importRun(files, bundle)).toEqual({ runId: 'run-1', outcome: 'restored' })
    expect(await files.verify('run-1')).toEqual([])
    expect(await files.peek('run-1')).toEqual(await one.peek('run-1'))
    const back = await all(exportRun(files, 'run-1'))
    expect(back).toEqual(bundle)
    const store = await openSqliteStore({ path: ':memory:', environment })
    const empty = openStoreJournal({ store, environment })
    expect(await importRun(empty, back)).toMatchObject({ outcome: 'restored' })
    expect(await importRun(empty, back)).toMatchObject({ outcome: 'same' })
    expect(await all(exportRun(empty, 'run-1'))).toEqual(bundle)
    expect(await empty.verify('run-1')).toEqual([])
    const writer = await empty.open('run-1', AUTHOR)
    await applyCommand(writer, { kind: 'move', to: 'DRAFT_READY' })
    await empty.close()
    await store.close()
  })
})
