// A process that is frozen for longer than its leases, and wakes after others have committed: every
// verb of a holder is refused, and nothing changes. How its handlers learn of it is shown by
// test/engine/processes/leases.test.ts.
import { defineJob, type Job, type Pawl } from 'pawl'
import type { Fact } from 'pawl/rules'
import { expect, it, onTestFinished } from 'vitest'
import type { Held } from '../../src/stores/contract/store.ts'
import { PLACES, type Place } from '../engine/processes/places.ts'
import { until } from '../engine/processes/until.ts'
import { Helper } from '../processes/children.ts'
import { brokenPromises } from '../processes/inspect.ts'

const STALE = 'E_STALE_FENCE'
/** Every verb of a holder, and how it is told that it is late. */
const ANSWERS = {
  ...{ start: STALE, step: STALE, settle: STALE, fail: STALE, 'fail for good': STALE },
  ...{ release: STALE, suspend: STALE, cancel: STALE, commit: `${STALE}, ran 0 times` },
  ...{ heartbeat: 'lost', progress: 'lost' },
} as const
const VERBS = Object.keys(ANSWERS)
const LEASE_MS = 1000

it.each(PLACES)(
  'on $name no verb of a frozen holder that wakes after the commit of another changes anything',
  async ({ place }) => {
    const here = await place()
    const { pawl, bookings } = here
    const { ids, frozen } = await freeze(here)
    const taken = await takeOver(here)
    for (const held of taken) expect((await book(here, held)).kind).toBe('done')
    const before = await everythingOf(pawl, ids)
    expect(before.map(({ job }) => [job?.outcome, job?.attempt])).toEqual(
      VERBS.map(() => ['succeeded', 2]),
    )

    frozen.signal('SIGCONT')
    expect(await frozen.ask({})).toEqual(ANSWERS)
    expect(await everythingOf(pawl, ids)).toEqual(before)
    expect(await bookings()).toEqual(bookedOnceEach(ids))
    expect(await brokenPromises(pawl.store)).toEqual([])
  },
)

it.each(PLACES)(
  'on $name a frozen holder that wakes while another runs its jobs takes nothing from it',
  async ({ place }) => {
    const here = await place()
    const { pawl, bookings } = here
    const { ids, frozen } = await freeze(here)
    const taken = await takeOver(here)
    const before = await everythingOf(pawl, ids)

    frozen.signal('SIGCONT')
    expect(await frozen.ask({})).toEqual(ANSWERS)
    // Also the leases of the other are as long as they were.
    expect(await everythingOf(pawl, ids)).toEqual(before)
    for (const held of taken) expect((await book(here, held)).kind).toBe('done')
    expect(await bookings()).toEqual(bookedOnceEach(ids))
    expect(await brokenPromises(pawl.store)).toEqual([])
  },
)

/** A process that holds a job for each verb, and is stopped. */
async function freeze({ pawl, store }: Place): Promise<{ ids: string[]; frozen: Helper }> {
  const ids = await enqueueOneForEach(pawl)
  const frozen = new Helper(new URL('frozen-holder.mjs', import.meta.url))
  onTestFinished(() => {
    // A stopped process could not be ended otherwise.
    frozen.signal('SIGCONT')
    return frozen.stop()
  })
  const held = await frozen.ask({ store, types: VERBS, leaseMs: LEASE_MS })
  expect(held).toEqual(VERBS.map((verb) => [verb, 1]))
  frozen.signal('SIGSTOP')
  return { ids, frozen }
}

/** A job for each verb, of a type that is named after it. */
async function enqueueOneForEach(pawl: Pawl): Promise<string[]> {
  const ids: string[] = []
  for (const name of VERBS) {
    const job = defineJob({ name, retry: { delay: '20ms', jitter: 0 } })
    ids.push((await pawl.enqueue(job, null)).id)
  }
  return ids
}

/** Takes every job back when its lease has run out, and holds it as its second attempt. */
async function takeOver({ pawl: { store } }: Place): Promise<Held[]> {
  const taken: Held[] = []
  await until('all jobs are taken over', async () => {
    await store.recover(100)
    await store.promote(100)
    const request = { worker: 'other', types: VERBS, limit: 100, leaseMs: 30_000, start: true }
    taken.push(...(await store.claim(request)))
    return taken.length === VERBS.length
  })
  return taken
}

/** Commits a job with a row of the user's own. */
function book({ pawl }: Place, held: Held) {
  const { id, attempt } = held.job
  return pawl.store.commit(held, async (tx) => {
    await tx.query(`INSERT INTO bookings (job, attempt) VALUES ('${id}', ${attempt})`)
    return '"theirs"'
  })
}

function bookedOnceEach(ids: readonly string[]) {
  return [...ids].sort().map((job) => ({ job, attempt: 2 }))
}

/** All that there is to know of these jobs. */
function everythingOf({ store }: Pawl, ids: readonly string[]) {
  return Promise.all(
    ids.map(
      async (id): Promise<{ job: Job | undefined; facts: Fact[]; rest: unknown[] }> => ({
        job: await store.get(id),
        facts: await store.facts(id),
        rest: [await store.payloads(id), await store.progress(id)],
      }),
    ),
  )
}
