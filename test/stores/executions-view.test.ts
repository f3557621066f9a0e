// The view of executions in SQL says what the library says, whatever happened to the jobs.
import fc from 'fast-check'
import { type Execution, executionsOf, LIFECYCLES } from 'pawl/rules'
import { type TestEnvironment, testEnvironment } from 'pawl/testing'
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Held, Store } from '../../src/stores/contract/store.ts'
import { openPostgresStore } from '../../src/stores/postgres/open.ts'
import { openSqlite } from '../../src/stores/sqlite/store.ts'
import { Bench, failureOf, fenceOf, OPERATOR } from '../contract/store/bench.ts'
import { freshStoreDatabase } from '../support/postgres/databases.ts'

type Rows = () => Promise<Record<string, unknown>[]>

interface Opened {
  readonly store: Store
  readonly rows: Rows
}

const VIEWS = [
  {
    name: 'a SQLite file',
    open: async (environment: TestEnvironment): Promise<Opened> => {
      const { store, query } = await openSqlite({ path: ':memory:', environment })
      const rows = async () =>
        (await query('SELECT * FROM pawl_executions')) as Record<string, unknown>[]
      return { store, rows }
    },
  },
  {
    name: 'PostgreSQL',
    open: async (environment: TestEnvironment): Promise<Opened> => {
      const connectionString = await freshStoreDatabase()
      const store = await openPostgresStore({
        ...{ connectionString, environment, clock: 'environment', connections: 2 },
      })
      const client = new pg.Client({ connectionString })
      await client.connect()
      onTestFinished(() => client.end())
      const rows = async () => (await client.query('SELECT * FROM pawl.executions')).rows
      return { store, rows }
    },
  },
] as const

/** A row of the view as the library writes an execution, without what the view does not have. */
function fromRow(row: Record<string, unknown>): Omit<Execution, 'abort' | 'final'> {
  const number = (value: unknown) => (value === null ? null : Number(value))
  return {
    execId: String(row.exec_id),
    jobId: String(row.job_id),
    attempt: Number(row.attempt),
    leaseOwner: String(row.lease_owner),
    leaseExpiresAt: Number(row.lease_expires_at),
    status: row.status as Execution['status'],
    startedAt: number(row.started_at),
    finishedAt: number(row.finished_at),
    timing:
      row.queue_ms === null
        ? null
        : { queueMs: Number(row.queue_ms), durationMs: Number(row.duration_ms) },
    error: row.error === null ? null : JSON.parse(String(row.error)),
    thrown: row.thrown === null ? null : JSON.parse(String(row.thrown)),
  }
}

/** What a handler threw. */
const THROWN = {
  name: 'CardDeclined',
  message: 'it "declined"',
  stack: 'at pay (pay.ts:3:1)',
  cause: { name: 'Error', message: 'no money' },
}

const ACTS = [
  'commit',
  'fail',
  'terminal',
  'release',
  'expire',
  'cancel',
  'park',
  'effect',
] as const
const act = fc.record({ act: fc.constantFrom(...ACTS), start: fc.boolean() })
const life = fc.record({
  lifecycle: fc.constantFrom(...LIFECYCLES),
  acts: fc.array(act, { minLength: 1, maxLength: 5 }),
})

async function play(bench: Bench, held: Held, what: (typeof ACTS)[number]): Promise<void> {
  const { id } = held.job
  switch (what) {
    case 'commit':
      await bench.settle(held, { kind: 'commit' }, '1')
      break
    case 'fail':
      await bench.settle(held, { kind: 'fail', failure: failureOf('transient', 'it "broke"') })
      break
    case 'terminal':
      await bench.settle(held, {
        kind: 'fail',
        failure: { ...failureOf('terminal'), thrown: THROWN },
      })
      break
    case 'release':
      await bench.settle(held, { kind: 'release' })
      break
    case 'expire':
      await bench.expire()
      break
    case 'cancel':
      await bench.applyCommand(id, { kind: 'cancel' })
      break
    case 'park':
      await bench.applyCommand(id, { kind: 'park' }, OPERATOR)
      await bench.applyCommand(id, { kind: 'redrive' }, OPERATOR)
      break
    case 'effect':
      await bench.settle(held, { kind: 'start' })
      await bench.store.commit(held, (tx) => {
        tx.effect('send', '{}')
        return 'null'
      })
  }
  await bench.store.heartbeat([{ ref: held.ref, fence: fenceOf(held) }], 60_000)
}

describe.each(VIEWS)('the view of executions in $name', ({ open }) => {
  it('equals the executions of the library for random lives of jobs', async () => {
    const environment = testEnvironment()
    const { store, rows } = await open(environment)
    onTestFinished(() => store.close())
    const { advance } = environment
    const ownTable = { add() {}, all: () => [] }
    const bench = new Bench(environment, { store, advance, ownTable })
    const lives = fc.sample(life, 60)
    for (const [i, { lifecycle, acts }] of lives.entries()) {
      const queue = `q${i}`
      await bench.enqueue({ lifecycle, queue })
      for (const { act: what, start } of acts) {
        await bench.advance(120_000)
        await store.promote(100)
        const [held] = await bench.claim({ queues: [queue], start, worker: `w${i}` })
        if (held !== undefined) await play(bench, held, what)
      }
    }
    const expected: Omit<Execution, 'abort' | 'final'>[] = []
    for (const id of await bench.ids()) {
      for (const execution of executionsOf(await store.facts(id))) {
        const { abort: _abort, final: _final, ...one } = execution
        expected.push(one)
      }
    }
    const byId = (a: { execId: string }, b: { execId: string }) => (a.execId < b.execId ? -1 : 1)
    const seen = (await rows()).map(fromRow)
    expect(expected.length).toBeGreaterThan(100)
    const statuses = expected.map(({ status }) => status)
    expect(statuses).toEqual(expect.arrayContaining(['COMMITTED', 'DONE', 'ABORTED']))
    expect(seen.toSorted(byId)).toEqual(expected.toSorted(byId))
  })

  it('is restored by the doctor when somebody has dropped it', async () => {
    const environment = testEnvironment()
    const { store, rows } = await open(environment)
    onTestFinished(() => store.close())
    expect(await store.examination.drift()).toEqual([])
    const held = await new Bench(environment, {
      ...{ store, advance: environment.advance, ownTable: { add() {}, all: () => [] } },
    }).hold()
    await store.commit(held, async (tx) => {
      await tx.query(store.constructor.name === 'SqliteStore' ? 'DROP VIEW pawl_executions' : DROP)
      return 'null'
    })
    const [missing, ...others] = await store.examination.drift()
    expect([missing?.kind, missing?.problem, others]).toEqual(['view', 'missing', []])
    if (missing !== undefined) await store.examination.restore(missing)
    expect(await store.examination.drift()).toEqual([])
    expect(await rows()).toHaveLength(1)
  })
})

const DROP = 'DROP VIEW pawl.executions'
