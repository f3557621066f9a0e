// The race error of the hardening requirements (R0): a job changed between the read and the write
// of a command. The verbs of both stores read and write under one lock, so that no other connection
// can come in between. These tests take the lock away and leave everything else: the database, the
// statements, a second connection that moves the job. What is left is the compare-and-set on the
// number of the last fact, and it must refuse.
import { join } from 'node:path'
import { StaleFence } from 'pawl'
import { openPostgresStore } from 'pawl/postgres'
import { hardened, TransitionRace } from 'pawl/rules'
import { type Held, openSqliteStore, type Store } from 'pawl/sqlite'
import { Pool, type PoolClient, type QueryConfig } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Database, loadDriver, type Statement } from '../../src/stores/sqlite/driver.ts'
import { freshFolder } from '../processes/folder.ts'
import { brokenPromises } from '../processes/inspect.ts'
import { freshStoreDatabase } from '../support/postgres/databases.ts'

const ANN = { actor: 'operator', operator: 'ann', note: 'to see what happens' } as const
const JOB_ID = '00000000-0000-7000-8000-000000000001'

/** Two connections to one database. The first has lost its locks. */
interface Racing {
  readonly unlocked: Store
  readonly other: Store
  /** Has `move` done by the other connection between the next read and write of the first. */
  race(command: () => Promise<unknown>, move: () => Promise<unknown>): Promise<unknown>
}

async function closing(opening: Promise<Store>): Promise<Store> {
  const store = await opening
  onTestFinished(() => store.close())
  return store
}

const READ_JOB = /^\s*SELECT \* FROM pawl_jobs WHERE (id|rid) = \?$/

/**
 * SQLite: a driver whose connections have no transactions. A read in JavaScript cannot be held up,
 * so the row is read before the other connection moves the job, and served afterwards.
 */
async function onFile(): Promise<Racing> {
  const path = join(freshFolder(), 'jobs.db')
  const other = await closing(openSqliteStore({ path }))
  let stale: unknown
  let isRacing = false
  const { DatabaseSync } = loadDriver()
  class Unlocked extends (DatabaseSync as unknown as new (...args: unknown[]) => Database) {
    override exec(sql: string): void {
      if (!(isRacing && /^(BEGIN|COMMIT|ROLLBACK)/.test(sql))) super.exec(sql)
    }
    override prepare(sql: string): Statement {
      const statement = super.prepare(sql)
      if (!READ_JOB.test(sql)) return statement
      const get: Statement['get'] = (...values) => (isRacing ? stale : statement.get(...values))
      return { run: (...v) => statement.run(...v), all: (...v) => statement.all(...v), get }
    }
  }
  const driver = { DatabaseSync: Unlocked as never }
  const unlocked = await closing(openSqliteStore({ path, driver }))
  return {
    unlocked,
    other,
    async race(command, move) {
      const reader = new DatabaseSync(path)
      stale = reader.prepare('SELECT * FROM pawl_jobs WHERE id = ?').get(JOB_ID)
      reader.close()
      await move()
      isRacing = true
      return command().finally(() => {
        isRacing = false
      })
    },
  }
}

/** PostgreSQL: a pool whose connections read rows without locking them. */
async function onServer(): Promise<Racing> {
  const connectionString = await freshStoreDatabase()
  const other = await closing(openPostgresStore({ connectionString }))
  let between: (() => Promise<unknown>) | undefined
  const pool = new Pool({ connectionString, max: 3 })
  onTestFinished(() => pool.end())
  const withoutLocks = (client: PoolClient) =>
    new Proxy(client, {
      get(target, name) {
        const member = Reflect.get(target, name) as unknown
        if (name === 'query') {
          return async (query: QueryConfig) => {
            const isLock = between !== undefined && query.text.endsWith('FOR UPDATE')
            if (!isLock) return target.query(query)
            const { name: _, ...unnamed } = query
            const text = query.text.replace(/ FOR UPDATE$/, '')
            const rows = await target.query({ ...unnamed, text })
            const move = between
            between = undefined
            await move?.()
            return rows
          }
        }
        return typeof member === 'function' ? member.bind(target) : member
      },
    })
  const borrowed = {
    connect: (done: (error: Error | undefined, client?: PoolClient) => void) =>
      pool.connect((error, client) => done(error, client && withoutLocks(client))),
    end: async () => {},
    on: pool.on.bind(pool),
    removeListener: pool.removeListener.bind(pool),
    options: pool.options,
  }
  const unlocked = await closing(openPostgresStore({ pool: borrowed as never }))
  return {
    unlocked,
    other,
    async race(command, move) {
      between = move
      return command()
    },
  }
}

const STORES = [
  { name: 'a SQLite file', open: onFile },
  { name: 'PostgreSQL', open: onServer },
] as const

async function enqueue(store: Store): Promise<void> {
  const command = { jobId: JOB_ID, type: 'work', queue: 'default' }
  await store.enqueue([{ lifecycle: hardened, command, input: 'null' }])
}

async function hold(store: Store): Promise<Held> {
  const request = { worker: 'w1', limit: 1, leaseMs: 60_000, start: true }
  const [held] = await store.claim(request)
  return held as Held
}

const fenceOf = ({ job }: Held) => ({ attempt: job.attempt, claim: job.execution?.claim ?? '' })
const everything = async (store: Store) => [await store.get(JOB_ID), await store.facts(JOB_ID)]

/** The error with which a verb refused, by its answer or by throwing. */
async function errorOf(asked: Promise<unknown>): Promise<unknown> {
  try {
    const answer = await asked
    const [one] = Array.isArray(answer) ? answer : (answer as { answers: unknown[] }).answers
    return (one as { error?: unknown }).error
  } catch (error) {
    return error
  }
}

describe.each(STORES)('a job on $name that another connection moves', ({ open }) => {
  it('between the read and the write of a command: TransitionRace, nothing written', async () => {
    const { unlocked, other, race } = await open()
    await enqueue(other)
    let after: unknown
    const command = () => unlocked.applyCommand([JOB_ID], { kind: 'park' }, ANN)
    const error = await errorOf(
      race(command, async () => {
        await hold(other)
        after = await everything(other)
      }),
    )
    expect(error).toBeInstanceOf(TransitionRace)
    expect(error).toMatchObject({ code: 'E_TRANSITION_RACE', details: { jobId: JOB_ID } })
    expect(await everything(other)).toEqual(after)
    expect(await other.get(JOB_ID)).toMatchObject({ state: 'running', attempt: 1 })
    expect(await brokenPromises(other)).toEqual([])
  })

  it('between read and write of its completion: TransitionRace, and one end', async () => {
    const { unlocked, other, race } = await open()
    await enqueue(other)
    const held = await hold(other)
    const fence = fenceOf(held)
    const failure = { kind: 'error', class: 'terminal', message: 'it broke' } as const
    let after: unknown
    const complete = () => unlocked.settle([{ held, command: { kind: 'fail', fence, failure } }])
    const error = await errorOf(
      race(complete, async () => {
        await other.settle([{ held, command: { kind: 'commit', fence }, payload: '1' }])
        after = await everything(other)
      }),
    )
    expect(error).toBeInstanceOf(TransitionRace)
    expect(await everything(other)).toEqual(after)
    expect(await other.get(JOB_ID)).toMatchObject({ state: 'succeeded' })
    expect(await brokenPromises(other)).toEqual([])
  })

  it('before a completion begins is no longer RUNNING: its holder gets StaleFence', async () => {
    const { other } = await open()
    await enqueue(other)
    const held = await hold(other)
    await other.settle([{ held, command: { kind: 'release', fence: fenceOf(held) } }])
    const before = await everything(other)
    expect(await other.get(JOB_ID)).toMatchObject({ state: 'pending' })
    const command = { kind: 'commit', fence: fenceOf(held) } as const
    const error = await errorOf(other.settle([{ held, command, payload: '1' }]))
    expect(error).toBeInstanceOf(StaleFence)
    expect(error).toMatchObject({ code: 'E_STALE_FENCE', details: { because: 'not-held' } })
    expect(await everything(other)).toEqual(before)
  })

  it('by SQL inside its own commit: TransitionRace, and the whole commit is undone', async () => {
    const { other } = await open()
    const jobs = open === onFile ? 'pawl_jobs' : 'pawl.jobs'
    await enqueue(other)
    const held = await hold(other)
    const before = await everything(other)
    const committing = other.commit(held, async (tx) => {
      await tx.query('CREATE TABLE half (n int)')
      await tx.query(`UPDATE ${jobs} SET seq = seq + 1 WHERE id = '${JOB_ID}'`)
      return '1'
    })
    await expect(committing).rejects.toBeInstanceOf(TransitionRace)
    expect(await everything(other)).toEqual(before)
    expect(await brokenPromises(other)).toEqual([])
    const again = await other.commit(held, async (tx) => {
      await tx.query('CREATE TABLE half (n int)')
      return '1'
    })
    expect(again.kind).toBe('done')
  })
})
