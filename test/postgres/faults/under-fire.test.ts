// Worker processes while the server is killed, and while their connections are. PAWL_TEST_JOBS and
// PAWL_TEST_SECONDS make the run longer, and PAWL_TEST_SEED makes the workers do other things.

import type { Store } from 'pawl/postgres'
import type { Client } from 'pg'
import { expect, it } from 'vitest'
import { checkStore, listAll } from '../../contract/store/check.ts'
import { connected } from '../../support/postgres/clients.ts'
import { testSeed as seed } from '../../support/seed.ts'
import { makeUserRows, open, ownDatabase, ownServer, userRows } from './bed.ts'
import { type Result, Workers } from './workers.ts'

const PROCESSES = 3
const KILLS_MIN = 3
const KILLS_MAX = 10
const TERMINATE_EVERY_MS = 200
const jobs = Number(process.env.PAWL_TEST_JOBS ?? 200)
const seconds = Number(process.env.PAWL_TEST_SECONDS ?? 2)
const timeout = (seconds * 4 + 120) * 1000

/** What a caller must be ready for while the database is away. */
const OUTAGE = /^\w+: E_(STORE_UNAVAILABLE|STORE_BUSY|COMMIT_TOO_SLOW): /

it('workers survive a server that is killed again and again', { timeout }, async () => {
  const server = await ownServer()
  const kills = Math.min(KILLS_MAX, Math.max(KILLS_MIN, Math.ceil(seconds / 2)))
  const results = await underFire(server.url, async (workers) => {
    for (let kill = 0; kill < kills; kill++) {
      workers.allow(jobs / kills)
      // They work again, and in the middle of it the server dies.
      await workers.settleMore(Math.floor(jobs / kills / 4))
      await server.kill9()
      await server.restart()
    }
  })
  await judge(server.url, results)
})

const ALL = 'pid <> pg_backend_pid() AND datname = current_database()'
const LISTENERS = `${ALL} AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')`

it('workers survive the end of their listeners and of all connections every 200 ms', {
  timeout,
}, async () => {
  const url = await ownDatabase()
  const client = await connected(url)
  const rounds = Math.ceil((seconds * 1000) / TERMINATE_EVERY_MS)
  const results = await underFire(url, async (workers) => {
    for (const which of [LISTENERS, ALL]) {
      let ended = 0
      for (let round = 0; round < rounds; round++) {
        workers.allow(jobs / rounds / 2)
        await client.query('SELECT pg_sleep($1)', [TERMINATE_EVERY_MS / 1000])
        ended += await terminate(client, which)
      }
      expect(ended).toBeGreaterThan(rounds / 2)
    }
  })
  await judge(url, results)
})

async function terminate(client: Client, which: string): Promise<number> {
  const { rowCount } = await client.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE ${which} AND backend_type = 'client backend'`,
  )
  return rowCount ?? 0
}

async function underFire(url: string, fire: (workers: Workers) => Promise<void>) {
  await makeUserRows(await connected(url))
  const workers = new Workers(PROCESSES)
  await workers.start(url, seed)
  await fire(workers)
  return workers.finish()
}

/** Nothing is lost, nothing was done twice, and nobody saw another error than an outage. */
async function judge(url: string, results: readonly Result[]): Promise<void> {
  const errors = results.flatMap((result) => result.errors)
  expect(errors.filter((error) => !OUTAGE.test(error))).toEqual([])
  const store = await open(url)
  await expectAllEnded(store, results)
  const client = await connected(url)
  const { rows } = await client.query(
    `SELECT jobs.id FROM pawl.jobs JOIN pawl.ledger ON job = jobs.id
    WHERE kind = 30 AND payload = '"user"' ORDER BY jobs.id`,
  )
  expect(rows.length).toBeGreaterThan(0)
  expect(await userRows(client)).toEqual(rows.map(({ id }) => id))
  await checkStore(store)
}

/** What was accepted is there and has ended; what else is there, somebody had asked for. */
async function expectAllEnded(store: Store, results: readonly Result[]): Promise<void> {
  const found = await listAll(store, {}, 1000)
  expect(found.filter(({ outcome }) => outcome === null)).toEqual([])
  const ids = new Set(found.map(({ id }) => id))
  const promised = results.flatMap(({ accepted }) => accepted)
  expect(promised.filter((id) => !ids.has(id))).toEqual([])
  const asked = new Set([...promised, ...results.flatMap(({ doubtful }) => doubtful)])
  expect([...ids].filter((id) => !asked.has(id))).toEqual([])
}
