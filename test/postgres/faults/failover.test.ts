// A replicated PostgreSQL whose primary dies or is switched, under load. What was acknowledged is
// there afterwards, nothing was done twice, and nobody was told of an error in time.
import { createPawl, defineJob, type JobHandle, type Pawl, type PawlEvent } from 'pawl'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { checkStore } from '../../contract/store/check.ts'
import { connected, single } from '../../support/postgres/clients.ts'
import { type PostgresServer, startReplicated } from '../../support/postgres/server.ts'
import { accepted, item, makeUserRows, open, ownDatabase, ownServer, userRows } from './bed.ts'

const TIMEOUT = { timeout: 60_000 }
const CALLERS = 8

async function replicated() {
  const servers = await startReplicated()
  onTestFinished(async () => {
    await Promise.all([servers.primary.stop(), servers.standby.stop()])
  })
  const { primary, standby } = servers
  const hosts = [primary, standby].map(({ port }) => `127.0.0.1:${port}`).join()
  return { ...servers, url: `postgres://postgres@${hosts}/postgres` }
}

/** A job that leaves a row of the user's own with each commit. */
const order = defineJob({
  name: 'order',
  run: (context) =>
    context.commit(async (tx) => {
      await tx.query('INSERT INTO user_rows VALUES ($1)', [context.jobId])
      return 'done'
    }),
})

/** Callers that enqueue one job after the other until they are told to stop. */
class Load {
  readonly handles: JobHandle<string>[] = []
  readonly errors: unknown[] = []
  readonly events: PawlEvent[] = []
  longestMs = 0
  readonly #pawl: Pawl
  readonly #callers: Promise<void>[]
  #isOver = false

  constructor(pawl: Pawl) {
    this.#pawl = pawl
    this.#callers = Array.from({ length: CALLERS }, () => this.#call())
  }

  static async start(url: string): Promise<Load> {
    const pawl = await createPawl({ store: url, jobs: [order] })
    onTestFinished(() => pawl.close())
    const load = new Load(pawl)
    await pawl.work({ concurrency: 4, onEvent: (event) => load.events.push(event) })
    return load
  }

  /** Waits for so many further jobs that are acknowledged. */
  async further(count: number): Promise<void> {
    const goal = this.handles.length + count
    await vi.waitFor(() => expect(this.handles.length).toBeGreaterThanOrEqual(goal), {
      timeout: 30_000,
      interval: 20,
    })
  }

  /** Lets the callers come to their end, and waits until every job has been worked on. */
  async finish(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#callers)
    await Promise.all(this.handles.map((handle) => handle.result({ timeout: '30s' })))
  }

  async #call(): Promise<void> {
    while (!this.#isOver) {
      const start = performance.now()
      try {
        this.handles.push(await this.#pawl.enqueue(order, null))
      } catch (error) {
        this.errors.push(error)
      }
      this.longestMs = Math.max(this.longestMs, performance.now() - start)
    }
  }
}

/** Nothing that was acknowledged is missing, and nothing was done twice. */
async function judge({ handles, errors }: Load, server: PostgresServer): Promise<void> {
  expect(errors).toEqual([])
  const ids = handles.map(({ id }) => id).sort()
  expect(await userRows(await connected(server.url))).toEqual(ids)
  const store = await open(server.url)
  const { lanes } = await store.counts()
  expect(lanes).toMatchObject({ ready: 0, held: 0, parked: 0 })
  const found = await Promise.all(handles.map(({ id }) => store.get(id)))
  const spent = found.filter((job) => job?.failures !== 0 || job.crashes !== 0)
  expect(spent).toEqual([])
  await checkStore(store)
}

describe('a primary with a synchronous standby', () => {
  it('that is killed and replaced by its standby loses nothing', TIMEOUT, async () => {
    const { primary, standby, url } = await replicated()
    await makeUserRows(await connected(primary.url))
    const load = await Load.start(url)
    await load.further(100)
    await primary.kill9()
    await standby.promote()
    await load.further(100)
    await load.finish()
    await judge(load, standby)
  })

  it(
    'that comes back after the caller saw an unreplicated write is waited for',
    TIMEOUT,
    async () => {
      const { primary, standby } = await replicated()
      const store = await open(primary.url, { timeoutMs: 20_000 })
      await accepted(store, [item()])
      // The write is durable on the primary, and no standby has it.
      await standby.kill9()
      const one = item()
      const answer = store.enqueue([one])
      const client = await connected(primary.url)
      const waiting = `SELECT count(*)::int FROM pg_stat_activity WHERE wait_event = 'SyncRep'`
      await vi.waitFor(async () => expect(await single(client, waiting)).toBe(1), {
        timeout: 10_000,
      })
      await primary.kill9()
      await primary.restart()
      const other = await connected(primary.url)
      // Found again, and not acknowledged before a standby has it.
      await vi.waitFor(async () => expect(await single(other, waiting)).toBe(1), {
        timeout: 10_000,
      })
      await standby.restart()
      expect(await answer).toMatchObject([{ kind: 'created', job: { id: one.command.jobId } }])
      await primary.kill9()
      await standby.promote()
      const after = await open(standby.url)
      expect(await after.get(one.command.jobId)).toMatchObject({ id: one.command.jobId })
    },
  )
})

describe('a planned switch', () => {
  it('to read-only and back, with a restart, is no error to anybody', TIMEOUT, async () => {
    const server = await ownServer()
    await makeUserRows(await connected(server.url))
    const load = await Load.start(server.url)
    await load.further(50)
    const client = await connected(server.url)
    await client.query('ALTER SYSTEM SET default_transaction_read_only = on')
    await client.query('SELECT pg_reload_conf()')
    await vi.waitFor(() => expect(server.log).toContain('cannot execute'), { timeout: 10_000 })
    await server.restart()
    const again = await connected(server.url)
    await again.query('SET default_transaction_read_only = off')
    await again.query('ALTER SYSTEM RESET default_transaction_read_only')
    await again.query('SELECT pg_reload_conf()')
    await load.further(50)
    await load.finish()
    await judge(load, server)
  })
})

it('a session that ends inside the function of a commit spends no retry', TIMEOUT, async () => {
  const url = await ownDatabase()
  const job = defineJob({
    name: 'ended',
    retry: { max: 0 },
    run: ({ commit, attempt }) =>
      commit(async (tx) => {
        if (attempt < 3) await tx.query('SELECT pg_terminate_backend(pg_backend_pid())')
        return attempt
      }),
  })
  const pawl = await createPawl({ store: url, jobs: [job] })
  onTestFinished(() => pawl.close())
  await pawl.work()
  const handles = await pawl.enqueueMany(
    job,
    Array.from({ length: 20 }, () => ({ input: null })),
  )
  for (const handle of handles) {
    expect(await handle.result({ timeout: '30s' })).toMatchObject({ output: 3 })
    expect(await handle.get()).toMatchObject({ failures: 0, crashes: 0, releases: 2 })
  }
  await checkStore(pawl.store)
})

describe('several hosts', () => {
  it('are tried in turn, and one that is read-only is passed over', TIMEOUT, async () => {
    const { primary, standby } = await replicated()
    const refusing = 'postgres://postgres@127.0.0.1:1,127.0.0.1:'
    const url = `${refusing}${standby.port},127.0.0.1:${primary.port}/postgres`
    const store = await open(`${url}?target_session_attrs=read-write`)
    await accepted(store, [item()])
    expect((await (await open(primary.url)).counts()).lanes.ready).toBe(1)
  })

  it(
    'of which none takes writes are an outage, and the error names one of them',
    TIMEOUT,
    async () => {
      const { primary, url } = await replicated()
      await accepted(await open(primary.url), [item()])
      await primary.kill9()
      const opening = open(url, { timeoutMs: 1500 })
      await expect(opening).rejects.toMatchObject({
        code: 'E_STORE_UNAVAILABLE',
        // Which of the two was tried last depends on the moment.
        message: expect.stringMatching(
          /127\.0\.0\.1:\d+: the server is read-only|connect ECONNREFUSED 127\.0\.0\.1:\d+/,
        ),
      })
    },
  )
})
