// Processes that die at named places of the engine. Whatever the place, the next process finishes
// everything: nothing is lost, nothing is committed twice, and every row is the fold of its facts.
import type { Job } from 'pawl'
import { describe, expect, it } from 'vitest'
import { allJobs, brokenPromises } from '../../processes/inspect.ts'
import { half } from '../../support/extent.ts'
import { book, echo, wait } from './jobs.ts'
import { PLACES, type Place } from './places.ts'
import { until } from './until.ts'
import { WorkerProcess } from './worker-process.ts'

const WORK = { concurrency: 3, lease: '1s', recover: '100ms' } as const
const DIED = { code: null, signal: 'SIGKILL' } as const
const EACH = 5

/** Where a worker can die with work in hand, in the order in which it gets there. */
const WORKING = [
  { where: 'with its claim, before the first line of a handler', dieAt: 'worker.claimed' },
  { where: 'in a handler', dieAt: 'handler' },
  { where: 'at a commit, before it', dieAt: 'commit.begun' },
  { where: 'at a commit, before its answer', dieAt: 'commit.committed' },
  { where: 'after its handlers, before their report', dieAt: 'settle.begun' },
  { where: 'after the report, before its answer', dieAt: 'worker.reported' },
]
/** Places after which the other jobs of the process may have been committed as well. */
const MAY_BE_LAST = ['commit.committed', 'worker.reported']
const STOPPING = [
  { where: 'before it has given back its job', dieAt: 'settle.begun', crashes: 1, releases: 0 },
  { where: 'before it knows that it has', dieAt: 'worker.reported', crashes: 0, releases: 1 },
  { where: 'before it has signed off', dieAt: 'removeWorker.begun', crashes: 0, releases: 1 },
]
const RECOVERING = [
  { where: 'before it has recovered anything', dieAt: 'recover.begun' },
  { where: 'before it knows what it recovered', dieAt: 'recover.committed' },
]
/** `npm test` has each case on one of the databases, `npm run prove` on both. */
const onEach = <T extends object>(cases: readonly T[]) =>
  PLACES.flatMap((place, i) => half(cases, i).map((one) => ({ ...place, ...one })))

/** Jobs of both kinds: some write a row in their commit, some only return. */
async function enqueueSome({ pawl }: Place): Promise<string[]> {
  const times = Array.from({ length: EACH }, (_, i) => ({ input: { ms: 10 * i } }))
  const booked = await pawl.enqueueMany(book, times)
  await pawl.enqueueMany(echo, times)
  return booked.map(({ id }) => id).sort()
}

async function finish({ pawl, store, bookings }: Place, booked: string[]): Promise<Job[]> {
  await WorkerProcess.start(store, WORK)
  const isOver = async () => (await pawl.store.counts()).lanes.ended === 2 * EACH
  await until('all jobs have ended', isOver)
  const jobs = await allJobs(pawl.store)
  expect(jobs.map(({ state }) => state)).toEqual(jobs.map(() => 'succeeded'))
  for (const { id } of jobs) {
    const facts = await pawl.store.facts(id)
    expect(facts.filter(({ trigger }) => trigger === 'commit')).toHaveLength(1)
  }
  expect((await bookings()).map(({ job }) => job)).toEqual(booked)
  expect(await brokenPromises(pawl.store)).toEqual([])
  return jobs
}

describe('a worker that dies', () => {
  it.each(onEach(WORKING))('on $name $where is survived by its jobs', async ({ place, dieAt }) => {
    const here = await place()
    const booked = await enqueueSome(here)
    const victim = await WorkerProcess.start(here.store, { ...WORK, dieAt })
    expect(await victim.ends()).toEqual(DIED)
    // A server completes what it was sent before the process died.
    await until('its transactions have ended', here.isQuiet)
    const held = new Set((await leasedJobs(here)).map(({ id }) => id))
    if (!MAY_BE_LAST.includes(dieAt)) expect(held.size).toBeGreaterThan(0)
    const jobs = await finish(here, booked)
    // No attempt failed or was released: all that happened was a crash.
    expect(jobs.filter(({ failures, releases }) => failures + releases > 0)).toEqual([])
    expect(jobs.map(({ attempt }) => attempt)).toEqual(jobs.map(({ id }) => (held.has(id) ? 2 : 1)))
  })

  it.each(onEach(STOPPING))(
    'on $name while it stops, $where, leaves its job to the next one',
    async ({ place, dieAt, crashes, releases }) => {
      const { pawl, store } = await place()
      const job = await pawl.enqueue(wait, {})
      const options = { ...WORK, drain: '50ms', dieAt, diesWhileStopping: true } as const
      const victim = await WorkerProcess.start(store, options)
      await victim.tells({ kind: 'started', jobId: job.id, attempt: 1 })
      victim.signal('SIGTERM')
      expect(await victim.ends()).toEqual(DIED)

      const next = await WorkerProcess.start(store, WORK)
      await next.tells({ kind: 'started', jobId: job.id, attempt: 2 })
      next.order(job.id)
      const outcome = await job.result({ timeout: '15s' })
      expect(outcome).toMatchObject({ kind: 'succeeded', output: { attempt: 2 } })
      expect(outcome.job).toMatchObject({ crashes, releases, failures: 0 })
      expect(await brokenPromises(pawl.store)).toEqual([])
    },
  )

  it.each(onEach(RECOVERING))(
    'on $name while it recovers the jobs of a dead one, $where, is recovered from likewise',
    async ({ place, dieAt }) => {
      const here = await place()
      const { pawl, store } = here
      const booked = await enqueueSome(here)
      const first = await WorkerProcess.start(store, { ...WORK, dieAt: 'handler' })
      expect(await first.ends()).toEqual(DIED)
      const held = await heldJobs(here)
      expect(held).not.toEqual([])
      const end = Math.max(...held.map(({ execution }) => execution?.leaseUntil ?? 0))
      await until('its leases have expired', () => pawl.store.now() > end)

      const second = await WorkerProcess.start(store, { ...WORK, dieAt })
      expect(await second.ends()).toEqual(DIED)
      const stillHeld = await heldJobs(here)
      expect(stillHeld).toHaveLength(dieAt === 'recover.begun' ? held.length : 0)
      const jobs = await finish(here, booked)
      // However many recovered it, each crash was counted once.
      const crashed = jobs.filter(({ id }) => held.some((one) => one.id === id))
      expect(crashed.map(({ crashes }) => crashes)).toEqual(held.map(() => 1))
    },
  )
})

async function leasedJobs({ pawl }: Place): Promise<Job[]> {
  return (await allJobs(pawl.store)).filter(({ execution }) =>
    ['LEASED', 'IN_PROGRESS'].includes(execution?.status ?? ''),
  )
}

async function heldJobs({ pawl }: Place): Promise<Job[]> {
  return (await allJobs(pawl.store)).filter(({ execution }) => execution?.status === 'IN_PROGRESS')
}
