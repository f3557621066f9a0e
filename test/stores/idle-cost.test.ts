// What a store without limits, schedules, groups, admission, flows and retention pays for them:
// counted in statements, on both databases. A number that rises is a look that every idle worker,
// or every job, pays for a feature that it may not use.
import { standard } from 'pawl/rules'
import { testEnvironment } from 'pawl/testing'
import pg from 'pg'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { Recovery } from '../../src/engine/worker/recovery.ts'
import { systemEnvironment } from '../../src/environment/system.ts'
import type { Held, Store } from '../../src/stores/contract/store.ts'
import { openPostgresStore } from '../../src/stores/postgres/open.ts'
import { Connection } from '../../src/stores/sqlite/connect.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { freshStoreDatabase } from '../support/postgres/databases.ts'

/**
 * How many statements each call sends at most, when there is nothing to do and for one plain job.
 * A claim on PostgreSQL also asks every few seconds whether there are limits.
 */
const SQLITE = {
  'schedules.nextLook': 1,
  promote: 3,
  recover: 3,
  shed: 2,
  'admissions.tend': 1,
  nextDue: 1,
  'flows.wake': 1,
  'idle tick': 9,
  'claim of nothing': 4,
  enqueue: 1,
  claim: 6,
  settle: 6,
}
const POSTGRES = {
  'schedules.nextLook': 1,
  promote: 4,
  recover: 5,
  shed: 4,
  'admissions.tend': 1,
  nextDue: 1,
  'flows.wake': 1,
  'idle tick': 13,
  'claim of nothing': 1,
  enqueue: 1,
  claim: 2,
  settle: 1,
}

/** A store, and what its statements go through. */
interface Counted {
  readonly store: Store
  readonly spies: readonly { readonly mock: { readonly calls: readonly unknown[] } }[]
}

async function onSqlite(): Promise<Counted> {
  // Its time stands still: the store looks at the clock of its file now and then.
  const environment = testEnvironment()
  const store = await openSqliteStore({ path: ':memory:', environment })
  const spies = (['get', 'all', 'run'] as const).map((name) => vi.spyOn(Connection.prototype, name))
  return { store, spies }
}

async function onPostgres(): Promise<Counted> {
  const store = await openPostgresStore({ connectionString: await freshStoreDatabase() })
  return { store, spies: [vi.spyOn(pg.Client.prototype, 'query')] }
}

afterEach(() => {
  vi.restoreAllMocks()
})

/** The calls of a worker that has nothing to do, as often as it looks for expired leases. */
const CHORES = {
  'schedules.nextLook': (store: Store) => store.schedules.nextLook(),
  promote: (store: Store) => store.promote(100),
  recover: (store: Store) => store.recover(100),
  shed: (store: Store) => store.shed(100),
  'admissions.tend': (store: Store) => store.admissions.tend(100),
  'flows.wake': (store: Store) => store.flows.wake(100),
  nextDue: (store: Store) => store.nextDue(),
}
type Chore = keyof typeof CHORES

const request = { worker: 'w1', limit: 10, leaseMs: 30_000, start: true }

function enqueueOne(store: Store) {
  const jobId = systemEnvironment().ids.next()
  const command = { jobId, type: 'plain', queue: 'main' }
  return store.enqueue([{ lifecycle: standard, input: '{}', command }])
}

function settleOne(store: Store, [held]: readonly Held[]) {
  if (held?.job.execution == null) throw new Error('nothing was claimed')
  const fence = { attempt: held.job.attempt, claim: held.job.execution.claim }
  return store.settle([{ held, command: { kind: 'commit', fence }, payload: '1' }], request)
}

describe.each([
  ['SQLite', onSqlite, SQLITE],
  ['PostgreSQL', onPostgres, POSTGRES],
] as const)('on %s', (_name, open, most) => {
  it('features that nobody uses cost an idle worker and a plain job few statements', async () => {
    const { store, spies } = await open()
    onTestFinished(() => store.close())
    const sent = () => spies.reduce((sum, { mock }) => sum + mock.calls.length, 0)
    const costOf = async <T>(act: () => Promise<T>) => {
      const before = sent()
      const result = await act()
      return { result, cost: sent() - before }
    }
    const costs: Record<string, number> = {}
    const recovery = new Recovery(store, systemEnvironment(), 0)
    // In the first round statements are prepared and settings are read.
    for (let round = 0; round < 2; round++) {
      for (const chore of Object.keys(CHORES) as Chore[]) {
        costs[chore] = (await costOf(() => CHORES[chore](store) as Promise<unknown>)).cost
      }
      // All that an idle worker does for others. It looks first, and promotes nothing.
      costs['idle tick'] = (await costOf(() => recovery.run())).cost
      costs['claim of nothing'] = (await costOf(() => store.claim(request))).cost
      costs.enqueue = (await costOf(() => enqueueOne(store))).cost
      const claimed = await costOf(() => store.claim(request))
      costs.claim = claimed.cost
      costs.settle = (await costOf(() => settleOne(store, claimed.result))).cost
    }
    const above = Object.entries(most).filter(([call, bound]) => !((costs[call] ?? NaN) <= bound))
    expect(above, JSON.stringify(costs)).toEqual([])
  })
})
