// Operators, workers and retention against each other on the same jobs. PAWL_TEST_JOBS and
// PAWL_TEST_SECONDS make the run longer, and PAWL_TEST_SEED makes the processes do other things.

import { randomUUID } from 'node:crypto'
import { expect, it, vi } from 'vitest'
import { readable } from '../../../src/stores/damage.ts'
import { checkStore } from '../../contract/store/check.ts'
import { withHelpers } from '../../processes/children.ts'
import { connected, single } from '../../support/postgres/clients.ts'
import { testSeed as seed } from '../../support/seed.ts'
import { accepted, item, OPERATOR, open, ownDatabase, PATIENT, request, success } from './bed.ts'

const CONTENDER = new URL('./contender.mjs', import.meta.url)
const PROCESSES = 3
const jobs = Number(process.env.PAWL_TEST_JOBS ?? 600)
const seconds = Number(process.env.PAWL_TEST_SECONDS ?? 4)
const DEEDS = 'cancelAll enqueue listAll promote prune recover redriveAll work'.split(' ')

/** What a process did, and what went wrong. */
interface Told {
  readonly done: Readonly<Record<string, number>>
  readonly errors: readonly string[]
}

it('processes that do large things to the same jobs at once see no error', {
  timeout: (seconds + jobs / 20 + 60) * 1000,
}, async () => {
  const url = await ownDatabase()
  const store = await open(url)
  const keyed = (_: unknown, n: number) => item({ key: `key-${n}`, policy: PATIENT })
  await accepted(store, Array.from({ length: jobs }, keyed))
  const told = await withHelpers(CONTENDER, PROCESSES, (helpers) =>
    Promise.all(
      helpers.map((helper, i) => {
        const own = { worker: `worker-${i}`, seed: seed * 100 + i }
        return helper.ask<Told>({ kind: 'work', url, seconds, jobs, ...own })
      }),
    ),
  )
  expect(told.flatMap(({ errors }) => errors)).toEqual([])
  const done = told.flatMap((one) => Object.keys(one.done).filter((name) => one.done[name]))
  expect([...new Set(done)].sort()).toEqual(DEEDS)
  await checkStore(store)
})

it('the tail shows the facts of each job in order, also after waits for locks', async () => {
  const url = await ownDatabase()
  const [store, other] = [await open(url), await open(url)]
  // Inside a transaction the server shows its activity as it was at the first look.
  const [client, witness] = [await connected(url), await connected(url)]
  const ids = await accepted(store, [item(), item(), item()])
  const [, second, third] = ids as [string, string, string]
  await client.query('BEGIN')
  await client.query('SELECT 1 FROM pawl.jobs WHERE id = $1 FOR UPDATE', [second])
  // Its transaction has begun to write when it waits for the second job ...
  const waiting = store.applyCommand(ids, { kind: 'prioritise', priority: 2 }, OPERATOR)
  await vi.waitFor(async () => expect(await single(witness, WAITING)).toBe(1), { timeout: 10_000 })
  // ... and writes about the third one after a transaction that began later.
  await other.applyCommand([third], { kind: 'prioritise', priority: 1 }, OPERATOR)
  await client.query('ROLLBACK')
  expect((await waiting).map(({ kind }) => kind)).toEqual(['done', 'done', 'done'])
  const tail = readable(await other.tail(undefined, 100))
  const seqs = tail.filter(({ fact }) => fact.jobId === third).map(({ fact }) => fact.seq)
  expect(seqs).toEqual([1, 2, 3])
})

it('settling locks jobs in the order of their ids, as everything does', async () => {
  const url = await ownDatabase()
  const [store, client, witness] = [await open(url), await connected(url), await connected(url)]
  await accepted(
    store,
    // Random ones, so that the order of the table is none of the ids.
    Array.from({ length: 2000 }, () => item({ jobId: randomUUID() })),
  )
  // So that it is planned as for a store in use.
  await client.query('ANALYZE pawl.jobs')
  const held = await store.claim(request({ limit: 2 }))
  const [first, second] = held.map(({ job }) => job.id)
  await client.query('BEGIN')
  await client.query('SELECT 1 FROM pawl.jobs WHERE id = $1 FOR UPDATE', [first])
  const settling = store.settle(held.map(success).reverse())
  await vi.waitFor(async () => expect(await single(witness, WAITING)).toBe(1), { timeout: 10_000 })
  // Whoever held the second one and waited for the first would wait in a circle with others.
  const lock = 'SELECT 1 FROM pawl.jobs WHERE id = $1 FOR UPDATE NOWAIT'
  await expect(witness.query(lock, [second])).resolves.toMatchObject({ rowCount: 1 })
  await client.query('ROLLBACK')
  expect((await settling).answers.map(({ kind }) => kind)).toEqual(['done', 'done'])
})

/** How many processes of the server wait for a lock in this database. */
const WAITING = `SELECT count(*)::int FROM pg_stat_activity
  WHERE datname = current_database() AND wait_event_type = 'Lock'`
