// Lives through rounds of jobs for `memory.ts`, and prints what was held after each as JSON. In a
// round jobs are enqueued by one caller and by many, claimed, settled in several ways, looked at
// from all sides, and pruned into an archive: whatever grows with any of it would show.
import { join } from 'node:path'
import { standard } from 'pawl/rules'
import {
  type EnqueueItem,
  type Held,
  openSqliteStore,
  type Settlement,
  systemEnvironment,
} from 'pawl/sqlite'

/** Bytes held after a round, with all garbage collected. */
export interface Sample {
  readonly heap: number
  readonly rss: number
}

const BATCH = 100
const REQUEST = { worker: 'worker-1', limit: BATCH, leaseMs: 30_000, start: true }

const [folder = '', rounds, jobs] = process.argv.slice(2)
const { ids } = systemEnvironment()
await using store = await openSqliteStore({ path: join(folder, 'jobs.db') })

const samples: Sample[] = []
for (let round = 0; round < Number(rounds); round++) {
  await playRound(Number(jobs))
  globalThis.gc?.()
  const { heapUsed, external, rss } = process.memoryUsage()
  samples.push({ heap: heapUsed + external, rss })
}
process.stdout.write(JSON.stringify(samples))

async function playRound(count: number): Promise<void> {
  const stop = store.onWake(() => {})
  for (let done = 0; done < count; done += BATCH * 2) {
    const items = Array.from({ length: BATCH * 2 }, itemOf)
    await store.enqueue(items.slice(0, BATCH))
    await Promise.all(items.slice(BATCH).map((item) => store.enqueue([item])))
  }
  let held: readonly Held[] = await store.claim(REQUEST)
  while (held.length > 0) {
    const beats = held.map(({ ref, job }) => ({ ref, fence: fenceOf(job) }))
    await store.heartbeat(beats, REQUEST.leaseMs)
    held = (await store.settle(held.map(settlementOf), REQUEST)).claimed
  }
  await look()
  stop()
  const request = { endedBefore: store.now() + 1, limit: BATCH * 5, archive: async () => {} }
  for (let pruned = -1; pruned !== 0; ) pruned = await store.prune(request)
  if ((await store.counts()).lanes.ended !== 0) throw new Error('Not everything was pruned')
}

async function look(): Promise<void> {
  const { items } = await store.list({ queue: 'mail', tag: 'red' }, { limit: BATCH })
  for (const { id, type, key } of items) {
    await Promise.all([store.get(id), store.facts(id), store.payloads(id), store.asOf(id, 1)])
    if (key !== null) await store.getByKey(type, key)
  }
  await store.tail(undefined, BATCH)
}

let made = 0

/** Plain jobs, and some with a key, tags or a time to wait for. */
function itemOf(): EnqueueItem {
  const n = ++made
  const command = { jobId: ids.next(), type: 'send-mail', queue: 'mail' }
  const input = JSON.stringify({ n, text: 'x'.repeat(200) })
  if (n % 10 !== 0) return { lifecycle: standard, command, input }
  return { lifecycle: standard, command: { ...command, key: `key ${n}`, tags: ['red'] }, input }
}

/** Most succeed, some fail for good, and some are cancelled by their holder. */
function settlementOf(held: Held): Settlement {
  const fence = fenceOf(held.job)
  const n = made + Number(held.ref)
  if (n % 20 === 0) return { held, command: { kind: 'cancel', fence } }
  if (n % 20 !== 1) return { held, command: { kind: 'commit', fence }, payload: '{"sent":true}' }
  const failure = { class: 'terminal', kind: 'terminal', message: `no ${n}` } as const
  return { held, command: { kind: 'fail', fence, failure } }
}

function fenceOf({ attempt, execution }: Held['job']) {
  return { attempt, claim: execution?.claim ?? '' }
}
