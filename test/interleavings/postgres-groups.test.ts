// Verbs that meet at one group on PostgreSQL: every ordered pair of them, the first held before
// each of its statements while the second runs until it has ended or waits for a lock. Afterwards
// at most one job of the strict group runs, no job has overtaken another, no job is blocked without
// a reason, the server has seen no deadlock, and every job comes to its end.
import { standard } from 'pawl/rules'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { LimitKey } from '../../src/core/limits/keys.ts'
import type { Held, Store } from '../../src/stores/contract/store.ts'
import { CLIENT, failureOf, OPERATOR, settlement } from '../contract/store/bench.ts'
import { sharedPostgres } from '../support/postgres/databases.ts'
import { PostgresStage } from './postgres-stage.ts'
import { LEASE_MS } from './scenes.ts'

const STRICT = 'strict/example/acme'
const LINE = 'group/turns'
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

/** What is there when two verbs meet: jobs of a strict group, and of a queue with turns. */
interface Place {
  /** The first of the strict group, and one of the queue. */
  readonly head: Held
  readonly turn: Held
  /** The second of the strict group, which is blocked, and the third, which is ready. */
  readonly second: string
  readonly third: string
  /** A job that waits for the turn of its group, and one that is ready. */
  readonly grouped: string
  readonly fresh: string
}

type Meeting = (store: Store, place: Place) => Promise<unknown>

const VERBS: Readonly<Record<string, Meeting>> = {
  claim: (store) => store.claim({ ...REQUEST, worker: 'w2' }),
  'claim one turn': (store) => store.claim({ ...REQUEST, limit: 1, queues: ['turns'] }),
  succeed: (store, { head }) => store.settle([settlement(head, { kind: 'commit' }, '1')]),
  'succeed and claim': (store, { head, turn }) =>
    store.settle(
      [head, turn].map((one) => settlement(one, { kind: 'commit' }, '1')),
      REQUEST,
    ),
  fail: (store, { head }) =>
    store.settle([settlement(head, { kind: 'fail', failure: failureOf('transient', 'x') })]),
  release: (store, { head }) => store.settle([settlement(head, { kind: 'release' })]),
  recover: async (store) => {
    stage.pass(LEASE_MS)
    return store.recover(10)
  },
  'cancel the second': (store, { second }) => store.cancel([second], CLIENT),
  'cancel the third': (store, { third }) => store.cancel([third], CLIENT),
  'cancel jobs of the queue': (store, { grouped, fresh }) => store.cancel([grouped, fresh], CLIENT),
  'move jobs': (store, { second, grouped }) =>
    store.applyCommand([second, grouped], { kind: 'prioritise', priority: -3 }, CLIENT),
  quarantine: (store, { head }) => store.applyCommand([head.job.id], { kind: 'park' }, OPERATOR),
  promote: async (store) => {
    stage.pass(2000)
    return store.promote(10)
  },
}

const NAMES = Object.keys(VERBS)

async function enqueue(store: Store, queue: string, key: LimitKey): Promise<string> {
  const jobId = stage.newId()
  const command = { jobId, type: 'example', queue, limitKeys: [key] }
  await store.enqueue([{ lifecycle: standard, input: '{}', command }])
  stage.pass(1)
  return jobId
}

async function setUp(): Promise<Place> {
  await stage.clear()
  const { reader: store } = stage
  await store.limits.declare([{ name: LINE, max: null }])
  const strict = () => enqueue(store, 'main', { gate: STRICT, skip: true })
  const turn = (key: string) => enqueue(store, 'turns', { gate: `${LINE}/${key}` })
  await strict()
  const second = await strict()
  const [head] = await store.claim({ ...REQUEST, queues: ['main'] })
  await turn('a')
  const grouped = await turn('a')
  await turn('b')
  const [first] = await store.claim({ ...REQUEST, limit: 1, queues: ['turns'] })
  const [third, fresh] = [await strict(), await turn('b')]
  return { head: head as Held, turn: first as Held, second, third, grouped, fresh }
}

interface Row {
  readonly lane: number
  readonly blocked_on: string | null
}

/** What must hold at any moment when no verb is under way. */
async function judge(): Promise<void> {
  const { schema } = stage
  const { rows } = await admin.query<Row>(
    `SELECT lane, blocked_on FROM ${schema}.jobs WHERE queue = 'main' ORDER BY created_at, id`,
  )
  const holders = rows.filter(({ lane }) => lane !== 4 && lane !== 5)
  const running = holders.filter(({ lane }) => lane === 3)
  expect(running.length).toBeLessThanOrEqual(1)
  // The head runs, waits, or is ready; it is not blocked unless a worker looks at it soon.
  if (running.length === 1) expect(holders[0]?.lane).toBe(3)
  const { rows: gates } = await admin.query<{ used: number; soon: boolean }>(
    `SELECT used::int, open_at <= ${stage.reader.now() + 1000} AS soon
     FROM ${schema}.gates WHERE key = '${STRICT}'`,
  )
  expect(gates[0]?.used ?? 0).toBe(running.length)
  if (holders[0]?.lane === 7) expect(gates[0]?.soon).toBe(true)
  const { rows: lost } = await admin.query(
    `SELECT id FROM ${schema}.jobs WHERE lane = 7 AND blocked_on LIKE 'group/%'
       AND blocked_on NOT IN (SELECT key FROM ${schema}.groups)`,
  )
  expect(lost).toEqual([])
  expect(await stage.reader.limits.faults(10)).toEqual([])
}

/** Works until nothing is left; returns how many jobs have not ended. */
async function finish(): Promise<number> {
  const { reader: store } = stage
  for (let round = 0; round < 30; round++) {
    const { ended, parked, ...open } = (await store.counts()).lanes
    if (Object.values(open).every((jobs) => jobs === 0)) return 0
    await store.recover(10)
    await store.promote(10)
    const held = await store.claim(REQUEST)
    await judge()
    await store.settle(held.map((one) => settlement(one, { kind: 'commit' }, '1')))
    stage.pass(5000)
  }
  return 1
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
  await judge()
  expect(await finish()).toBe(0)
  return sent
}

const CIRCLES = ['40P01', '40001']

describe('verbs that meet at one group', () => {
  it.each(NAMES)('%s', { timeout: 600_000 }, async (first) => {
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
