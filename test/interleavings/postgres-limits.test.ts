// Verbs that meet at one gate on PostgreSQL: every ordered pair of them, the first held before each
// of its statements while the second runs until it has ended or waits for a lock. The limit is 1,
// so an index of the test lets at most one job hold it. Afterwards the count of every gate is
// right, no job is blocked without a reason, the server has seen no deadlock, and every job comes
// to its end.
import { standard } from 'pawl/rules'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Held, Store } from '../../src/stores/contract/store.ts'
import { CLIENT, OPERATOR, settlement } from '../contract/store/bench.ts'
import { sharedPostgres } from '../support/postgres/databases.ts'
import { PostgresStage } from './postgres-stage.ts'
import { LEASE_MS } from './scenes.ts'

const A = 'shared/a'
const B = 'shared/b'
const REQUEST = { worker: 'w', limit: 5, leaseMs: LEASE_MS, start: true }

let stage: PostgresStage
let admin: pg.Client
beforeAll(async () => {
  stage = await PostgresStage.open(sharedPostgres())
  admin = new pg.Client({ connectionString: sharedPostgres() })
  await admin.connect()
})
afterAll(async () => {
  await admin.end()
  await stage.close()
})

/** What is there when two verbs meet. */
interface Place {
  /** Two jobs that hold a slot each, of different gates. */
  readonly held: readonly [Held, Held]
  /** Jobs that are blocked by the first gate. */
  readonly blocked: readonly string[]
  /** A ready job that no claim has looked at yet. */
  readonly fresh: string
}

type Meeting = (store: Store, place: Place) => Promise<unknown>

const succeed: Meeting = (store, { held }) =>
  store.settle([settlement(held[0], { kind: 'commit' }, '1')])

/** Verbs that concern the first gate, or both. */
const VERBS: Readonly<Record<string, Meeting>> = {
  claim: (store) => store.claim({ ...REQUEST, worker: 'w2' }),
  succeed,
  'succeed with both': (store, { held }) =>
    store.settle(held.map((one) => settlement(one, { kind: 'commit' }, '1'))),
  'succeed and claim': (store, { held }) =>
    store.settle([settlement(held[0], { kind: 'commit' }, '1')], REQUEST),
  'succeed with the other and claim': (store, { held }) =>
    store.settle([settlement(held[1], { kind: 'commit' }, '1')], REQUEST),
  release: (store, { held }) => store.settle([settlement(held[0], { kind: 'release' })]),
  commit: (store, { held }) => store.commit(held[0], () => '1'),
  recover: async (store) => {
    stage.pass(LEASE_MS)
    return store.recover(10)
  },
  'cancel a blocked job': (store, { blocked }) => store.cancel([blocked[0] as string], CLIENT),
  'cancel the fresh job': (store, { fresh }) => store.cancel([fresh], CLIENT),
  quarantine: (store, { held }) => store.applyCommand([held[0].job.id], { kind: 'park' }, OPERATOR),
  'set the limit to 0': (store) => store.limits.set(A, 0, OPERATOR),
  'reset the limit': (store) => store.limits.reset(A, OPERATOR),
  open: async (store) => {
    stage.pass(2000)
    return store.promote(10)
  },
  recount: (store) => store.limits.recount([A, B]),
}

const NAMES = Object.keys(VERBS)

/** The jobs of a type, one after the other, so that each is claimed before the next is made. */
async function enqueue(store: Store, gates: readonly string[]): Promise<string> {
  const jobId = stage.newId()
  const limitKeys = gates.map((gate) => ({ gate }))
  const command = { jobId, type: 'example', queue: 'main', limitKeys }
  await store.enqueue([{ lifecycle: standard, input: '{}', command }])
  return jobId
}

async function setUp(): Promise<Place> {
  await stage.clear()
  const { reader: store } = stage
  await store.limits.declare([
    { name: A, max: 1 },
    { name: B, max: 1 },
  ])
  await store.limits.reset(A, OPERATOR)
  await enqueue(store, [A])
  await enqueue(store, [B])
  const held = await store.claim(REQUEST)
  const blocked = [await enqueue(store, [A]), await enqueue(store, [A, B])]
  await store.claim(REQUEST)
  const fresh = await enqueue(store, [B, A])
  return { held: held as [Held, Held], blocked, fresh }
}

/** Nobody is blocked by a gate that has room and at which nobody will look. */
async function findStuck(): Promise<string[]> {
  const { rows } = await admin.query(
    `SELECT job.id FROM ${stage.schema}.jobs AS job
     LEFT JOIN ${stage.schema}.gates AS gate ON gate.key = job.blocked_on
     LEFT JOIN ${stage.schema}.limits AS own ON own.name = job.blocked_on
     WHERE job.lane = 7 AND (gate.key IS NULL OR gate.waiting = 0
       OR (gate.used < coalesce(own.override, own.max) AND gate.open_at IS NULL))`,
  )
  return rows.map(({ id }: { id: string }) => id)
}

/** Works until nothing is left; returns how many jobs have not ended. */
async function finish(): Promise<number> {
  const { reader: store } = stage
  await store.limits.reset(A, OPERATOR)
  for (let round = 0; round < 30; round++) {
    if ((await openJobs(store)) === 0) return 0
    stage.pass(LEASE_MS)
    await store.recover(10)
    await store.promote(10)
    const held = await store.claim(REQUEST)
    await store.settle(held.map((one) => settlement(one, { kind: 'commit' }, '1')))
  }
  return openJobs(store)
}

async function openJobs(store: Store): Promise<number> {
  const { ended, parked, ...open } = (await store.counts()).lanes
  return Object.values(open).reduce((sum, jobs) => sum + jobs, 0)
}

/** Holds the first verb before its n-th statement; returns how many it had. */
async function meet(first: string, second: string, n: number): Promise<number> {
  const place = await setUp()
  const [one, other] = stage.sides
  const stopped = one.gate.stopAt(n)
  const running = (VERBS[first] as Meeting)(one.store, place)
  await Promise.race([stopped, running])
  const meeting = (VERBS[second] as Meeting)(other.store, place)
  await stage.untilEndedOrBlocked(meeting)
  one.gate.open()
  for (const end of await Promise.allSettled([running, meeting])) {
    if (end.status === 'rejected') throw end.reason
  }
  const { sent } = one.gate
  const { reader: store } = stage
  expect(await store.limits.drift(10)).toEqual([])
  for (const gate of [A, B]) expect((await store.limits.gate(gate)).used).toBeLessThanOrEqual(1)
  expect(await findStuck()).toEqual([])
  expect(await finish()).toBe(0)
  expect(await store.limits.drift(10)).toEqual([])
  return sent
}

const CIRCLES = ['40P01', '40001']

describe('verbs that meet at one gate', () => {
  it.each(NAMES)('%s', { timeout: 600_000 }, async (first) => {
    const index = `CREATE UNIQUE INDEX IF NOT EXISTS one_holder ON ${stage.schema}.jobs
      ((split_part(slots, ' ', 1))) WHERE lane = 3 AND slots IS NOT NULL`
    await admin.query(index)
    for (const second of NAMES) {
      for (let n = 1, statements = 1; n <= statements; n++) {
        const met = await meet(first, second, n).catch((error: unknown) => {
          throw new Error(`${first} held before ${n} meets ${second}`, { cause: error })
        })
        statements = Math.max(statements, Math.min(met, 30))
      }
    }
    expect(stage.refusals.filter((code) => CIRCLES.includes(code))).toEqual([])
  })
})
