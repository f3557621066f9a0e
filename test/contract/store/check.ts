/**
 * What must be true of a store after whatever was done to it: every promise holds for every job,
 * every row is the fold of its facts, and every way of reading says the same.
 */

import assert from 'node:assert/strict'
import type { Fact } from '../../../src/core/job/facts.ts'
import type { Job } from '../../../src/core/job/job.ts'
import { LANES, type Lane, laneOf } from '../../../src/core/job/lanes.ts'
import { findLifecycle, LIFECYCLES } from '../../../src/core/lifecycles/index.ts'
import type { Lifecycle } from '../../../src/core/lifecycles/lifecycle.ts'
import { checkFacts, checkP9 } from '../../../src/core/promises.ts'
import type { JobFilter, Store } from '../../../src/stores/contract/store.ts'
import { readable } from '../../../src/stores/damage.ts'
import { versionsOf } from '../../../src/stores/versions.ts'

/** Checks everything that can be read of a store against everything else. */
export async function checkStore(store: Store): Promise<void> {
  const jobs = await listAll(store, {})
  const { stored } = await versionsOf(store, LIFECYCLES)
  const lifecycles = [...LIFECYCLES, ...stored]
  const facts = new Map<string, Fact[]>()
  for (const job of jobs) facts.set(job.id, await checkJob(store, job, lifecycles))
  await checkLanes(store, jobs, lifecycles)
  await checkTail(store, facts)
  assert.deepEqual(await store.limits.drift(100), [], 'gates count the jobs that are held')
}

/** Every job that a filter shows, page by page. */
export async function listAll(store: Store, filter: JobFilter, limit = 100): Promise<Job[]> {
  const jobs: Job[] = []
  let after: string | undefined
  do {
    const page = await store.list(filter, { limit, ...(after !== undefined && { after }) })
    jobs.push(...page.items)
    after = page.next
  } while (after !== undefined)
  return jobs
}

async function checkJob(store: Store, job: Job, lifecycles: readonly Lifecycle[]): Promise<Fact[]> {
  assert.deepEqual(await store.get(job.id), job, 'a list shows the job as it is')
  const facts = await store.facts(job.id)
  const lifecycle = findLifecycle(job.lifecycle, job.lifecycleVersion, lifecycles)
  assert.deepEqual(checkFacts(lifecycle, facts, lifecycles), [])
  assert.deepEqual(checkP9(job, facts), [])
  const asOf = await store.asOf(job.id, job.seq)
  assert.deepEqual(asOf && settled(asOf), settled(job), 'the job as of its last fact is the job')
  if (job.key !== null) assert.deepEqual(await store.getByKey(job.type, job.key), job)
  return facts
}

/** A job without its volatile field: heartbeats write no facts. */
export function settled(job: Job): Job {
  return job.execution === null ? job : { ...job, execution: { ...job.execution, leaseUntil: 0 } }
}

async function checkLanes(
  store: Store,
  jobs: readonly Job[],
  lifecycles: readonly Lifecycle[],
): Promise<void> {
  const counts = await store.counts()
  const now = store.now()
  const seen: string[] = []
  for (const lane of Object.keys(LANES) as Lane[]) {
    const inLane = await listAll(store, { lane })
    assert.equal(counts.lanes[lane], inLane.length, `the count of lane ${lane} is right`)
    for (const job of inLane) {
      const lifecycle = findLifecycle(job.lifecycle, job.lifecycleVersion, lifecycles)
      // Time passes without a write, so a job that came due may still be where it waited.
      const allowed = [job.updatedAt, now].map((time) => laneOf(lifecycle, job, time))
      // No fact says that a limit blocks a ready job.
      if (lane === 'blocked') assert.ok((await store.limits.blockage(job.id)) !== undefined)
      else assert.ok(allowed.includes(lane), `a job in ${job.state} is not in lane ${lane}`)
      seen.push(job.id)
    }
  }
  assert.deepEqual(seen.toSorted(), jobs.map(({ id }) => id).toSorted(), 'each job is in one lane')
  assert.deepEqual({ ...counts.ended }, countBy(jobs.filter(({ outcome }) => outcome !== null)))
}

function countBy(jobs: readonly Job[]): Record<string, number> {
  const counts = new Map<string, number>()
  for (const { state } of jobs) counts.set(state, (counts.get(state) ?? 0) + 1)
  return Object.fromEntries(counts)
}

/**
 * A tail shows nothing that a transaction still under way could come before, and on PostgreSQL that
 * may be anybody's on the same server. So one that ends early is asked again, so many times.
 */
const LOOKS_MAX = 5000

/** The tail holds every fact of every job once, and each job's facts in their order. */
async function checkTail(store: Store, facts: ReadonlyMap<string, Fact[]>): Promise<void> {
  const tailed = new Map<string, Fact[]>()
  let missing = [...facts.values()].reduce((total, own) => total + own.length, 0)
  let looks = 0
  let pos: string | undefined
  for (;;) {
    const entries = readable(await store.tail(pos, 500))
    for (const entry of entries) {
      pos = entry.pos
      const own = tailed.get(entry.fact.jobId) ?? []
      own.push(entry.fact)
      tailed.set(entry.fact.jobId, own)
    }
    missing -= entries.length
    if (entries.length === 0 && (missing <= 0 || ++looks > LOOKS_MAX)) break
  }
  const byId = (map: ReadonlyMap<string, Fact[]>) =>
    [...map].toSorted(([a], [b]) => (a < b ? -1 : 1))
  assert.deepEqual(byId(tailed), byId(facts), 'the tail holds every fact once, in order')
}
