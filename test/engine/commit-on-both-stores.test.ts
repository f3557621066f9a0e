// The commit boundary through the engine, in real time, on both stores: what reaches the handler,
// what the raw handle can do, and what an answer that was lost comes to.

import { sql } from 'drizzle-orm'
import { drizzle as drizzleOnPostgres } from 'drizzle-orm/node-postgres'
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely'
import { createPawl, defineJob, type JobContext, type Pawl, type Tx } from 'pawl'
import { type Store, StoreUnavailable, UseTx } from 'pawl/sqlite'
import type pg from 'pg'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { LIFECYCLES } from '../../src/core/lifecycles/index.ts'
import { openStore } from '../../src/engine/open-store.ts'
import { SILENT } from '../../src/engine/watching/log.ts'
import { systemEnvironment } from '../../src/environment/system.ts'
import { brokenPromises } from '../processes/inspect.ts'
import { PLACES } from './processes/places.ts'

const WAIT = { timeout: 15_000, interval: 10 }
const timeout = 30_000

/** A Pawl of this process on a place, with these jobs and a store that may be changed. */
async function open(
  name: string,
  jobs: Parameters<typeof createPawl>[0]['jobs'],
  wrap: (store: Store) => Store = (store) => store,
  environment = systemEnvironment(),
): Promise<Pawl> {
  const store = await openStore(name, { lifecycles: LIFECYCLES, environment, logger: SILENT })
  const pawl = await createPawl({ store: wrap(store), jobs: jobs ?? [] })
  onTestFinished(async () => {
    await pawl.close()
    await store.close()
  })
  return pawl
}

const insert = (tx: Tx, isPostgres: boolean, { jobId, attempt }: JobContext<unknown>) =>
  tx.query(`INSERT INTO bookings VALUES (${isPostgres ? '$1, $2' : '?, ?'})`, [jobId, attempt])

const codeOf = (error: unknown) => (error as { code?: string }).code

describe.each(PLACES)('on $name', ({ name, place }) => {
  const isPostgres = name === 'PostgreSQL'

  it('a commit, its steps and its effects go the whole way', { timeout }, async () => {
    const { store, pawl: client, bookings } = await place()
    const delivered: string[] = []
    let runs = 0
    const job = defineJob({
      name: 'whole',
      retry: { max: 3, delay: 0 },
      effects: { mail: ({ key }) => delivered.push(key) },
      run: async (context) => {
        const parts = await Promise.all(
          [1, 2, 3].map((n) => context.step('part', () => n + ++runs)),
        )
        if (context.attempt === 1) throw new Error('once more')
        return context.commit(async (tx) => {
          await insert(tx, isPostgres, context)
          tx.effect('mail')
          tx.effect('mail')
          return parts
        })
      },
    })
    const pawl = await open(store, [job])
    await pawl.work()
    const handle = await client.enqueue(job, null)
    const outcome = await handle.result({ timeout: '10s' })
    expect(outcome).toMatchObject({ kind: 'succeeded', output: [2, 4, 6] })
    await vi.waitFor(async () => expect((await handle.get()).outcome).toBe('succeeded'), WAIT)
    expect([runs, delivered.sort()]).toEqual([3, [1, 2].map((n) => `${handle.id}/mail/${n}`)])
    expect(await bookings()).toEqual([{ job: handle.id, attempt: 2 }])
    expect(await brokenPromises(client.store)).toEqual([])
  })

  it('refusals reach the handler as what they are, and leave nothing', { timeout }, async () => {
    const { store, pawl: client, bookings } = await place()
    const codes: unknown[] = []
    const note = (error: unknown) => void codes.push(codeOf(error))
    const job = defineJob({
      name: 'refused',
      run: async (context) => {
        const { commit, step } = context
        const slow = (tx: Tx) =>
          insert(tx, isPostgres, context).then(() => new Promise<never>(() => {}))
        await commit(slow).catch(note)
        await commit(async () => {
          await step('inside', () => codes.push('it ran')).catch(note)
          await pawl.enqueue(job, null).catch(note)
          await commit(() => codes.push('it ran')).catch(note)
          throw new UseTx()
        }).catch(note)
        await commit(async (tx) => {
          await insert(tx, isPostgres, context)
          return 'at last'
        })
        await step('after', () => codes.push('it ran')).catch(note)
        throw new Error('too late to matter')
      },
    })
    const pawl = await open(store, [job])
    await pawl.work({ lease: '3s' })
    const handle = await client.enqueue(job, null)
    expect(await handle.result({ timeout: '10s' })).toMatchObject({ output: 'at last' })
    await vi.waitFor(() => expect(codes).toHaveLength(6), WAIT)
    const inside = ['E_USE_TX', 'E_USE_TX', 'E_USE_TX', 'E_USE_TX']
    expect(codes).toEqual(['E_COMMIT_TOO_SLOW', ...inside, 'E_COMMITTED'])
    expect(await bookings()).toEqual([{ job: handle.id, attempt: 1 }])
    expect(await handle.get()).toMatchObject({ attempt: 1, failures: 0, state: 'succeeded' })
  })

  it('a commit is too slow also for a process whose timers are late', { timeout }, async () => {
    const { store, pawl: client, bookings } = await place()
    const codes: unknown[] = []
    const job = defineJob({
      name: 'late',
      run: async (context) => {
        const slow = async (tx: Tx) => {
          await insert(tx, isPostgres, context)
          await new Promise(() => {})
        }
        await context.commit(slow).catch((error: unknown) => codes.push(codeOf(error)))
      },
    })
    const system = systemEnvironment()
    const { timers } = system
    const after: typeof timers.after = (ms, done) => timers.after(ms + 300, done)
    const environment = { ...system, timers: { ...timers, after } }
    const pawl = await open(store, [job], undefined, environment)
    await pawl.work({ lease: '3s' })
    const handle = await client.enqueue(job, null)
    await handle.result({ timeout: '10s' })
    expect(codes).toEqual(['E_COMMIT_TOO_SLOW'])
    expect(await bookings()).toEqual([])
  })

  it('a commit whose answer was lost is found by the next call', { timeout }, async () => {
    const { store, pawl: client, bookings } = await place()
    let runs = 0
    const codes: unknown[] = []
    const job = defineJob({
      name: 'unheard',
      run: async (context) => {
        const once = () =>
          context.commit(async (tx) => {
            await insert(tx, isPostgres, context)
            return ++runs
          })
        await once().catch((error: unknown) => codes.push(codeOf(error)))
        return once()
      },
    })
    const pawl = await open(store, [job], losingCommits(1))
    await pawl.work()
    const handle = await client.enqueue(job, null)
    expect(await handle.result({ timeout: '10s' })).toMatchObject({ output: 1 })
    expect([runs, codes]).toEqual([1, ['E_STORE_UNAVAILABLE']])
    expect(await bookings()).toHaveLength(1)
  })

  it('a handler that takes a lost answer for a failure has committed all the same', {
    timeout,
  }, async () => {
    const { store, pawl: client, bookings } = await place()
    const delivered: string[] = []
    const job = defineJob({
      name: 'given up',
      effects: { mail: ({ key }) => delivered.push(key) },
      run: (context) =>
        context.commit(async (tx) => {
          await insert(tx, isPostgres, context)
          tx.effect('mail')
          return 'kept'
        }),
    })
    const pawl = await open(store, [job], losingCommits(9))
    const worker = await pawl.work()
    const handle = await client.enqueue(job, null)
    expect(await handle.result({ timeout: '10s' })).toMatchObject({ output: 'kept' })
    await vi.waitFor(async () => expect((await handle.get()).outcome).toBe('succeeded'), WAIT)
    await vi.waitFor(() => expect(worker.running).toBe(0), WAIT)
    expect(await handle.get()).toMatchObject({ attempt: 1, failures: 0 })
    expect([await bookings(), delivered]).toMatchObject([[{ attempt: 1 }], [`${handle.id}/mail/1`]])
  })

  it('the raw handle is the driver’s own, until the commit ends', { timeout }, async () => {
    const { store, pawl: client, bookings } = await place()
    const codes: unknown[] = []
    const job = defineJob({
      name: 'raw',
      run: async (context) => {
        let kept: (() => unknown)[] = []
        await context.commit(async (tx) => {
          kept = isPostgres ? await usePostgres(tx, context) : useSqlite(tx, context)
          return 1
        })
        for (const late of kept) {
          try {
            await late()
            codes.push('it ran')
          } catch (error) {
            codes.push(codeOf(error))
          }
        }
      },
    })
    const pawl = await open(store, [job])
    await pawl.work()
    const handle = await client.enqueue(job, null)
    expect(await handle.result({ timeout: '10s' })).toMatchObject({ output: 1 })
    await vi.waitFor(() => expect(codes.length).toBeGreaterThan(1), WAIT)
    expect(new Set(codes)).toEqual(new Set(['E_TX_ENDED']))
    expect((await bookings()).map(({ attempt }) => attempt).sort()).toEqual([1, 2, 3])
  })
})

/** A store that commits, and then is not heard of; so often. */
const losingCommits = (count: number) => (store: Store) => {
  let left = count
  return new Proxy(store, {
    get(target, name) {
      const value = target[name as keyof Store] as unknown
      if (typeof value !== 'function') return value
      if (name !== 'commit') return value.bind(target)
      const commit: Store['commit'] = async (...values) => {
        const answer = await target.commit(...values)
        if (left-- > 0) throw new StoreUnavailable(0, 'simulated')
        return answer
      }
      return commit
    },
  })
}

type Late = (() => unknown)[]

/** Writes by three ways; answers with what must not be possible later. */
async function usePostgres({ raw }: Tx, { jobId }: JobContext<unknown>): Promise<Late> {
  const client = raw as pg.ClientBase
  const values = (attempt: number) => [jobId, attempt]
  const text = 'INSERT INTO bookings VALUES ($1, $2)'
  await client.query(text, values(1))
  const pool = { connect: async () => client as pg.PoolClient, end: async () => {} }
  const kysely = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) })
  await kysely.executeQuery(CompiledQuery.raw(text, values(2)))
  const drizzle = drizzleOnPostgres({ client: client as pg.PoolClient })
  await drizzle.execute(sql`INSERT INTO bookings VALUES (${jobId}, ${3})`)
  await expect(drizzle.transaction(async () => {})).rejects.toThrow()
  await expect((async () => client.query('COMMIT'))()).rejects.toMatchObject({ code: 'E_TX_OWNED' })
  return [
    () => client.query(text, values(4)),
    () => kysely.executeQuery(CompiledQuery.raw(text, values(5))),
  ]
}

interface SqliteHandle {
  prepare(sql: string): { run(...values: unknown[]): unknown; all(...values: unknown[]): unknown[] }
  exec(sql: string): void
  close(): void
}

function useSqlite({ raw }: Tx, { jobId }: JobContext<unknown>): Late {
  const database = raw as SqliteHandle
  const statement = database.prepare('INSERT INTO bookings VALUES (?, ?)')
  statement.run(jobId, 1)
  database.exec(`INSERT INTO bookings VALUES ('${jobId}', 2)`)
  // Closing is not theirs to do, and libraries do it as a matter of course.
  database.close()
  statement.run(jobId, 3)
  expect(database.prepare('SELECT attempt FROM bookings').all()).toHaveLength(3)
  for (const text of ['COMMIT', ' rollback', '/* a */ -- b\n end']) {
    const refused = expect.objectContaining({ code: 'E_TX_OWNED' })
    expect(() => database.exec(text)).toThrow(refused)
    expect(() => database.prepare(text)).toThrow(refused)
  }
  return [
    () => statement.run(jobId, 4),
    () => database.exec(`INSERT INTO bookings VALUES ('${jobId}', 5)`),
    () => database.prepare('SELECT 1'),
  ]
}
