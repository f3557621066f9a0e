// What waiting costs, on each store. A drain of jobs of a type with signals that get none, against
// a drain of plain jobs. Jobs that suspend once and are woken by a signal, against plain jobs: the
// time counts from the first claim until all have ended, signals included. And a claim beside many
// sleeping jobs, against a claim in an empty store.
import { join } from 'node:path'
import { createPawl, defineJob, defineSignal, typed } from 'pawl'
import type { Held, Store } from 'pawl/sqlite'
import { compare, inFolder, type Result, timed } from './measure.ts'
import { inDatabase, withServer } from './postgres-server.ts'
import { idsOf, itemOf, QUEUE, requestOf, TYPE } from './stores.ts'

const ROUNDS = 5
const CLAIM_ROUNDS = 51
const SLOTS = 100
const SEND = 100
const BLOCK = 1000
const DAY_MS = 86_400_000
const CLAIMED = 10

const go = defineSignal({ name: 'go', payload: typed<null>() })
const plain = defineJob({ name: TYPE, queue: QUEUE, run: () => {} })
const declaring = defineJob({ name: TYPE, queue: QUEUE, signals: [go], run: () => {} })
const waiting = defineJob({
  name: TYPE,
  queue: QUEUE,
  signals: [go],
  run: async ({ waitForSignal }) => {
    await waitForSignal(go, { timeout: '1d' })
  },
})

/** A way to a fresh store, by the name that `createPawl` takes. */
type WithStore = <T>(work: (name: string) => Promise<T>) => Promise<T>

/** Measures everything, or what has `only` in its name. */
export async function benchWaiting(options: { quick: boolean; only?: string }): Promise<Result[]> {
  const onFile: WithStore = (work) =>
    inFolder((folder) => work(`sqlite:${join(folder, 'jobs.db')}`))
  const results = await benchOn('sqlite', onFile, options)
  if (!namesOf('postgres', options.quick).some((name) => name.includes(options.only ?? ''))) {
    return results
  }
  const others = await withServer((url) =>
    benchOn('postgres', (work) => inDatabase(url, (own) => work(own)), options),
  )
  return [...results, ...others]
}

function namesOf(store: string, quick: boolean): [declared: string, woken: string, beside: string] {
  return [
    `${store}: drain of a type with signals against one without`,
    `${store}: suspend and wake by signal against a plain drain`,
    `${store}: ms to claim ${CLAIMED} beside ${sleepersOf(quick)} sleeping jobs, against none`,
  ]
}

const sleepersOf = (quick: boolean) => (quick ? 20_000 : 1_000_000)

async function benchOn(
  label: string,
  withStore: WithStore,
  { quick, only = '' }: { quick: boolean; only?: string },
): Promise<Result[]> {
  const [declared, woken, beside] = namesOf(label, quick)
  const jobs = quick ? 1000 : 20_000
  const rateOf = (type: typeof plain | typeof declaring) => () =>
    withStore((name) => rate(name, type, jobs))
  const results: Result[] = []
  if (declared.includes(only)) {
    results.push(await compare(declared, ROUNDS, rateOf(declaring), rateOf(plain)))
  }
  if (woken.includes(only)) {
    const wake = () => withStore((name) => rateWoken(name, jobs))
    results.push(await compare(woken, ROUNDS, wake, rateOf(plain)))
  }
  if (beside.includes(only)) results.push(await benchBeside(beside, withStore, sleepersOf(quick)))
  return results
}

/** How many jobs a second are worked off. */
async function rate(
  name: string,
  type: typeof plain | typeof declaring,
  jobs: number,
): Promise<number> {
  await using pawl = await createPawl({ store: name, jobs: [type] })
  await pawl.store.enqueue(idsOf(jobs).map(itemOf))
  let left = jobs
  const took = await timed(
    () =>
      new Promise<void>((done) => {
        const onEvent = ({ type: event }: { type: string }) => {
          if (event === 'reported' && --left === 0) done()
        }
        void pawl.work({ concurrency: SLOTS, queues: [QUEUE], onEvent })
      }),
  )
  return (jobs / took) * 1000
}

/** The same for jobs that wait once: the signals are sent while others still suspend. */
async function rateWoken(name: string, jobs: number): Promise<number> {
  await using pawl = await createPawl({ store: name, jobs: [waiting] })
  await pawl.store.enqueue(idsOf(jobs).map(itemOf))
  let left = jobs
  let asleep: string[] = []
  const sent: Promise<unknown>[] = []
  const wake = () => {
    const signal = { name: go.name, key: 'go', payload: 'null' }
    sent.push(pawl.store.waits.signal(asleep, signal, { actor: 'client' }))
    asleep = []
  }
  let suspended = 0
  const took = await timed(
    () =>
      new Promise<void>((done) => {
        void pawl.work({
          concurrency: SLOTS,
          queues: [QUEUE],
          onEvent: (event) => {
            if (event.type !== 'moved') return
            if (event.job.outcome !== null && --left === 0) done()
            if (event.trigger !== 'wait') return
            asleep.push(event.job.id)
            suspended++
            if (asleep.length === SEND || suspended === jobs) wake()
          },
        })
      }),
  )
  await Promise.all(sent)
  return (jobs / took) * 1000
}

/** The time of a claim in a store with sleeping jobs, against one without, in turns. */
function benchBeside(name: string, withStore: WithStore, sleepers: number): Promise<Result> {
  return withStore((full) =>
    withStore(async (empty) => {
      await using crowded = await createPawl({ store: full, jobs: [plain] })
      await using alone = await createPawl({ store: empty, jobs: [plain] })
      await putToSleep(crowded.store, sleepers)
      const claims = (CLAIM_ROUNDS + 1) * CLAIMED
      for (const { store } of [crowded, alone]) await store.enqueue(idsOf(claims).map(itemOf))
      const claim = (store: Store) => async () => {
        let held: readonly Held[] = []
        const ms = await timed(async () => {
          held = await store.claim(requestOf({ batch: CLAIMED, jobs: 0 }))
        })
        if (held.length !== CLAIMED) throw new Error(`claimed ${held.length} jobs`)
        return ms
      }
      return compare(name, CLAIM_ROUNDS, claim(crowded.store), claim(alone.store))
    }),
  )
}

/** Claims jobs and lets each sleep for a day, as its handler would. */
async function putToSleep(store: Store, count: number): Promise<void> {
  const until = store.now() + DAY_MS
  for (let left = count; left > 0; left -= BLOCK) {
    await store.enqueue(idsOf(Math.min(BLOCK, left)).map(itemOf))
    const held = await store.claim({ ...requestOf({ batch: BLOCK, jobs: 0 }), limit: BLOCK })
    await Promise.all(
      held.map(({ job: { id, attempt, execution } }) =>
        store.waits.wait({
          id,
          fence: { attempt, claim: execution?.claim ?? '' },
          wait: { for: 'sleep', name: 'nap', n: 1, until },
        }),
      ),
    )
  }
}
