// The clock of one worker is wrong by ten minutes. Leases and due times are judged by that of the
// database, so that it makes no difference to anybody.

import type { Store } from 'pawl/postgres'
import { beforeEach, describe, expect, it } from 'vitest'
import { type Environment, systemEnvironment } from '../../../src/environment/system.ts'
import { checkStore } from '../../contract/store/check.ts'
import { connected, single } from '../../support/postgres/clients.ts'
import { freshSchema, sharedPostgres } from '../../support/postgres/databases.ts'
import { accepted, beatOf, hold, item, open, proxyTo, request } from './bed.ts'

const TEN_MINUTES = 600_000
const LEASE_MS = 1000
/** How far two who ask one clock may be apart on a busy machine. */
const NEAR_MS = 1000
/** How long an answer is on its way that says little of the present. */
const LATE_MS = 2500
const BOUND = { timeout: 15_000 }

/** An environment whose clock is wrong, by what may still change. */
function wrongBy(wrong: { ms: number }): Environment {
  const environment = systemEnvironment()
  return { ...environment, clock: { now: () => environment.clock.now() + wrong.ms } }
}

const url = sharedPostgres()
let schema: string
let right: Store

beforeEach(async () => {
  schema = freshSchema(url)
  right = await open(url, { schema })
})

describe.each([
  { what: 'ten minutes ahead', ms: TEN_MINUTES },
  { what: 'ten minutes behind', ms: -TEN_MINUTES },
])('a worker whose clock is $what', ({ ms }) => {
  let wrong: Store

  beforeEach(async () => {
    wrong = await open(url, { schema, environment: wrongBy({ ms }) })
  })

  it('takes leases that neither expire at once nor last without end', async () => {
    const held = await hold(wrong, { leaseMs: LEASE_MS })
    const leaseUntil = held.job.execution?.leaseUntil ?? 0
    await expect.poll(() => right.recover(10), BOUND).toHaveLength(1)
    const [, , expired] = await right.facts(held.job.id)
    expect(expired?.trigger).toBe('expire')
    expect(expired?.at).toBeGreaterThanOrEqual(leaseUntil)
    expect(expired?.at).toBeLessThan(leaseUntil + BOUND.timeout)
  })

  it('keeps its leases by heartbeats', async () => {
    const held = await hold(wrong, { leaseMs: LEASE_MS })
    const end = (held.job.execution?.leaseUntil ?? 0) + 1
    expect(await wrong.heartbeat([beatOf(held)], 60_000)).toMatchObject({ lost: [] })
    await expect.poll(() => right.now(), BOUND).toBeGreaterThan(end)
    expect(await right.recover(10)).toEqual([])
    expect(await right.heartbeat([beatOf(held)], 60_000)).toMatchObject({ lost: [] })
  })

  it('takes only what is due, and nothing that others hold', async () => {
    expect(Math.abs(wrong.now() - right.now())).toBeLessThan(NEAR_MS)
    await hold(right, { leaseMs: 60_000 })
    const now = right.now()
    const [soon, due] = [item({ runAt: now + 60_000 }), item({ runAt: now - 60_000 })]
    await accepted(right, [soon, due])
    expect(await wrong.recover(10)).toEqual([])
    expect(await wrong.promote(10)).toBe(0)
    const held = await wrong.claim(request({ limit: 10 }))
    expect(held.map(({ job }) => job.id)).toEqual([due.command.jobId])
  })

  it('enqueues what others claim at once, and writes the time of the database', async () => {
    const before = right.now()
    const [id] = (await accepted(wrong, [item()])) as [string]
    const [held] = await right.claim(request())
    expect(held?.job.id).toBe(id)
    expect(Math.abs((held?.job.createdAt ?? 0) - before)).toBeLessThan(BOUND.timeout)
    await checkStore(right)
  })
})

it('an answer that was long on its way does not set the clock wrong', async () => {
  const client = await connected(url)
  const proxy = await proxyTo(url)
  const clock = { ms: 0 }
  const store = await open(proxy.through(url), { schema, environment: wrongBy(clock) })
  const now = async () =>
    single(client, 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8')
  proxy.stall()
  // For a moment it seems that the last answer is old, so that the store asks anew.
  clock.ms = 6000
  const asking = store.heartbeat([], 1000)
  clock.ms = 0
  const late = store.now() + LATE_MS
  await expect.poll(() => store.now(), BOUND).toBeGreaterThan(late)
  proxy.resume()
  await asking
  await store.list({})
  expect(Math.abs(store.now() - Number(await now()))).toBeLessThan(NEAR_MS)
})
