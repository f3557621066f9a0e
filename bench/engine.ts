// The whole engine on each store: a worker that drains jobs whose handlers do nothing, against the
// store's own drain with batches of as many jobs as the worker has slots; and how long it takes an
// idle worker to start a job, in milliseconds from the call of enqueue. Then the same with handlers
// that do what makes them worth it: five steps each, or a commit with an effect, fifty at once,
// against handlers that do nothing.
import { join } from 'node:path'
import { createPawl, defineJob, type Pawl } from 'pawl'
import type { Held, Store } from 'pawl/sqlite'
import { compare, inFolder, type Result, resultOf, timed } from './measure.ts'
import { inDatabase, withServer } from './postgres-server.ts'
import { idsOf, itemOf, QUEUE, requestOf, settleAll, TYPE } from './stores.ts'

const ROUNDS = 5
const SLOTS = 100
const BUSY_SLOTS = 50
const STEPS = ['one', 'two', 'three', 'four', 'five']

/** A way to a fresh store, by the name that `createPawl` takes. */
type WithStore = <T>(work: (name: string) => Promise<T>) => Promise<T>

/** Measures everything, or what has `only` in its name. */
export async function benchEngine(options: { quick: boolean; only?: string }): Promise<Result[]> {
  const onFile: WithStore = (work) =>
    inFolder((folder) => work(`sqlite:${join(folder, 'jobs.db')}`))
  const results = await benchOn('sqlite', onFile, options)
  if (!namesOf('postgres').some((name) => name.includes(options.only ?? ''))) return results
  const others = await withServer((url) =>
    benchOn('postgres', (work) => inDatabase(url, (own) => work(own)), options),
  )
  return [...results, ...others]
}

function namesOf(store: string): [drain: string, latency: string, steps: string, effect: string] {
  return [
    `${store}: engine against store, drain`,
    `${store}: enqueue to start, p99 against p50`,
    `${store}: jobs with 5 steps against none, 50 at once`,
    `${store}: jobs with an effect against none, 50 at once`,
  ]
}

async function benchOn(
  label: string,
  withStore: WithStore,
  { quick, only = '' }: { quick: boolean; only?: string },
): Promise<Result[]> {
  const [drain, latency, steps, effect] = namesOf(label)
  const results: Result[] = []
  if (drain.includes(only)) {
    const jobs = quick ? 2000 : 20_000
    const engine = () => withStore((name) => rateOf(name, jobs, drainByEngine))
    const store = () => withStore((name) => rateOf(name, jobs, drainByStore))
    results.push(await compare(drain, ROUNDS, engine, store))
  }
  if (latency.includes(only)) {
    const waits = await withStore((name) => measureStarts(name, quick ? 50 : 300))
    const at = (share: number) => waits[Math.floor(waits.length * share)] as number
    results.push(resultOf(latency, [{ pawl: at(0.99), reference: at(0.5) }]))
  }
  for (const [name, job] of [[steps, stepping] as const, [effect, sending] as const]) {
    if (!name.includes(only)) continue
    const jobs = quick ? 500 : 5000
    const rate = (own: typeof nothing) => () => withStore((store) => rateBusy(store, own, jobs))
    results.push(await compare(name, ROUNDS, rate(job), rate(nothing)))
  }
  return results
}

let onStart: () => void = () => {}
const nothing = defineJob({ name: TYPE, queue: QUEUE, run: () => onStart() })

const stepping = defineJob({
  name: TYPE,
  queue: QUEUE,
  run: async ({ step }) => {
    for (const name of STEPS) await step(name, () => name)
  },
})

let onDelivery: () => void = () => {}
const sending = defineJob({
  name: TYPE,
  queue: QUEUE,
  effects: { mail: () => onDelivery() },
  run: ({ commit }) => commit((tx) => tx.effect('mail', { to: 'ann@example.org' })),
})

/** How many jobs a second are worked off, with all that they do. */
async function rateBusy(name: string, job: typeof nothing, jobs: number): Promise<number> {
  await using pawl = await createPawl({ store: name, jobs: [job] })
  await pawl.store.enqueue(idsOf(jobs).map(itemOf))
  const took = await timed(
    () =>
      new Promise<void>((done) => {
        let left = jobs
        const count = () => {
          if (--left === 0) done()
        }
        onDelivery = count
        const onEvent = ({ type }: { type: string }) => {
          if (type === 'reported' && job !== sending) count()
        }
        const effects = { concurrency: BUSY_SLOTS }
        void pawl.work({ concurrency: BUSY_SLOTS, queues: [QUEUE], effects, onEvent })
      }),
  )
  return (jobs / took) * 1000
}

async function rateOf(
  name: string,
  jobs: number,
  drain: (pawl: Pawl, jobs: number) => Promise<void>,
): Promise<number> {
  await using pawl = await createPawl({ store: name, jobs: [nothing] })
  await pawl.store.enqueue(idsOf(jobs).map(itemOf))
  return (jobs / (await timed(() => drain(pawl, jobs)))) * 1000
}

async function drainByEngine(pawl: Pawl, jobs: number): Promise<void> {
  let left = jobs
  await new Promise<void>((done) => {
    const onEvent = ({ type }: { type: string }) => {
      if (type === 'reported' && --left === 0) done()
    }
    void pawl.work({ concurrency: SLOTS, queues: [QUEUE], onEvent })
  })
}

async function drainByStore({ store }: { store: Store }): Promise<void> {
  const load = { batch: SLOTS, jobs: 0 }
  let held: readonly Held[] = await store.claim(requestOf(load))
  while (held.length > 0) held = await settleAll(store, held, load)
}

/** How long each of some jobs waits for an idle worker, sorted. */
async function measureStarts(name: string, jobs: number): Promise<number[]> {
  await using pawl = await createPawl({ store: name, jobs: [nothing] })
  await pawl.work({ queues: [QUEUE] })
  const waits: number[] = []
  for (let i = 0; i < jobs; i++) {
    const started = new Promise<void>((resolve) => {
      onStart = resolve
    })
    const start = performance.now()
    const job = await pawl.enqueue(nothing, null)
    await started
    waits.push(performance.now() - start)
    await job.result()
    // Long enough for the worker to have gone idle.
    await new Promise((resolve) => setTimeout(resolve, 30))
  }
  return waits.sort((a, b) => a - b)
}
