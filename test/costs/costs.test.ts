// What each operation of a store costs, in units that do not depend on the machine: round trips,
// statements, rows, pages. The numbers are pinned exactly, so a change that makes an operation do
// more is noticed without measuring time.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testEnvironment } from 'pawl/testing'
import pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { openPostgresStore } from '../../src/stores/postgres/open.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { startPostgres } from '../support/postgres/server.ts'
import { playOperations } from './operations.ts'
import { POSTGRES_COSTS, SQLITE_COSTS } from './pinned.ts'
import { PostgresMeter, WrittenLog } from './postgres-meter.ts'
import { SqliteMeter } from './sqlite-meter.ts'

type Costs = Readonly<Record<string, Readonly<Record<string, number>>>>

it('every operation on SQLite costs exactly what is pinned', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-costs-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'jobs.db')
  const meter = new SqliteMeter()
  const environment = testEnvironment()
  await using store = await openSqliteStore({ path, environment, driver: meter.driver })
  const costs: Record<string, Record<string, number>> = {}
  await playOperations(store, environment, async (name, operation) => {
    const before = meter.cost(path)
    const answer = await operation()
    costs[name] = difference({ ...before }, { ...meter.cost(path) })
    return answer
  })
  expectPinned('SQLite', costs, SQLITE_COSTS)
})

it('every operation on PostgreSQL costs exactly what is pinned', async () => {
  // Its own server: what others write, and vacuum, would be counted as well.
  const server = await startPostgres({ settings: { autovacuum: 'off', checkpoint_timeout: '1h' } })
  onTestFinished(() => server.stop())
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  const pool = new pg.Pool({ connectionString: server.url, max: 2 })
  onTestFinished(async () => {
    await client.end()
    await pool.end()
  })
  const meter = new PostgresMeter()
  meter.watch(pool)
  const log = new WrittenLog(client, 'pawl')
  await log.prepare()
  const environment = testEnvironment()
  const store = await openPostgresStore({ pool, environment, clock: 'environment' })
  const costs: Record<string, Record<string, number>> = {}
  await playOperations(store, environment, async (name, operation) => {
    const from = await log.position()
    const before = meter.cost
    const answer = await operation()
    costs[name] = { ...difference({ ...before }, { ...meter.cost }), ...(await log.since(from)) }
    return answer
  })
  await store.close()
  expectPinned('PostgreSQL', costs, POSTGRES_COSTS)
})

it('a cost that changed is named with both numbers', () => {
  const pinned = { claim: { rows: 2, pages: 3 }, gone: { rows: 1 } }
  const changes = changesOf('SQLite', { claim: { rows: 2, pages: 4 }, more: { rows: 1 } }, pinned)
  expect(changes).toEqual([
    'SQLite, claim: pages 3 → 4',
    'SQLite, more: is not pinned: {"rows":1}',
    'SQLite, gone: was not measured',
  ])
})

function expectPinned(database: string, costs: Costs, pinned: Costs): void {
  const changes = changesOf(database, costs, pinned)
  const advice =
    'The cost of operations has changed. If that is deliberate, record the new numbers in ' +
    `test/costs/pinned.ts and say in the commit why. All of ${database}:\n`
  expect(changes, `${changes.join('\n')}\n${advice}${JSON.stringify(costs, null, 2)}`).toEqual([])
}

function changesOf(database: string, costs: Costs, pinned: Costs): string[] {
  const measured = Object.entries(costs).flatMap(([name, cost]) => {
    const known = pinned[name]
    if (known === undefined) return [`${database}, ${name}: is not pinned: ${JSON.stringify(cost)}`]
    const units = Object.keys({ ...known, ...cost }).filter((unit) => cost[unit] !== known[unit])
    return units.map((unit) => `${database}, ${name}: ${unit} ${known[unit]} → ${cost[unit]}`)
  })
  const missing = Object.keys(pinned).filter((name) => costs[name] === undefined)
  return [...measured, ...missing.map((name) => `${database}, ${name}: was not measured`)]
}

function difference(
  before: Readonly<Record<string, number>>,
  after: Readonly<Record<string, number>>,
): Record<string, number> {
  const entries = Object.entries(after)
  return Object.fromEntries(entries.map(([unit, number]) => [unit, number - (before[unit] ?? 0)]))
}
