/**
 * The numbers of an overview, for stores with millions of jobs. Ended jobs are counted by the
 * store's own counters. Rates and times come from the newest facts of the ledger: at most
 * `FACTS_MAX`, and not older than `WINDOW_MS`. Everything else is counted up to a bound.
 */
import type { Fact } from '../core/job/facts.ts'
import { isRate } from '../core/limits/keys.ts'
import { shortName } from '../core/limits/short-names.ts'
import type { Pawl } from '../engine/pawl.ts'
import type { Store } from '../stores/contract/store.ts'

const WINDOW_MS = 5 * 60_000
const FACTS_MAX = 2000
const PAGE = 1000
const QUEUES_MAX = 100
const ATTENTION_MAX = 1000
const GATES_MAX = 100
const GATES_SHOWN = 20
const BLOCKED_MS = 60_000
const TICKS_MAX = 200
const FLOWS_MAX = 100
const DAY_MS = 86_400_000

/** What is counted by reading the indexes of all jobs that have not ended. */
export async function censusOf({ store, queues }: Pawl) {
  return { counts: await store.counts(), queues: await queues.list() }
}

export type Census = Awaited<ReturnType<typeof censusOf>>

/** Counts everything. */
export async function overviewOf(pawl: Pawl, census = () => censusOf(pawl)) {
  const { store } = pawl
  const now = store.now()
  const { counts, queues } = await census()
  const { lanes, ended } = counts
  const workers = await pawl.workers.list()
  const live = workers.filter((worker) => worker.live)
  const waits = queues.flatMap(({ oldestReadyMs }) => oldestReadyMs ?? [])
  return {
    now,
    lanes,
    ended,
    oldestReadyMs: waits.length === 0 ? null : Math.max(...waits),
    queueCount: queues.length,
    queues: queues.toSorted((a, b) => b.lanes.ready - a.lanes.ready).slice(0, QUEUES_MAX),
    workers: {
      live: live.length,
      running: sumOf(live.map(({ running }) => running)),
      concurrency: sumOf(live.map(({ concurrency }) => concurrency)),
      gone: workers.length - live.length,
    },
    recent: await recentOf(store, now),
    attention: {
      parkedJobs: lanes.parked,
      parkedEffects: (await store.listEffects({ state: 'parked' }, { limit: PAGE })).items.length,
      stalledJobs: await stalledIn(store),
      stuckHandlers: sumOf(live.map(({ stuck }) => stuck)),
      pausedQueues: queues.filter(({ pausedAt }) => pausedAt !== undefined).length,
      unservedQueues: queues.filter(({ lanes: own, workers: by }) => own.ready > 0 && by === 0)
        .length,
      missedTicks: await missedTicks(store, now),
      parkedFlows: lanes.parked === 0 ? 0 : await parkedFlows(store),
      longBlocked: await longBlocked(store, now),
    },
  }
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}

/** Jobs whose lease has expired and whose recovery waits for an operator. */
async function stalledIn(store: Store): Promise<number> {
  const { items } = await store.list({ stalled: true }, { limit: ATTENTION_MAX })
  return items.length
}

/** Ticks of the last day that made no job because no worker was there in time. */
async function missedTicks({ schedules }: Store, now: number): Promise<number> {
  const { items } = await schedules.records({ kind: 'tick' }, { limit: TICKS_MAX })
  const missed = items.filter(({ at, action }) => action === 'missed' && at >= now - DAY_MS)
  return sumOf(missed.map(({ ticks = 1 }) => ticks))
}

/** Flows and batches with a parked job. */
async function parkedFlows({ flows }: Store): Promise<number> {
  const { items } = await flows.list({ state: 'attention' }, { limit: FLOWS_MAX })
  return items.length
}

/** Limits and keys that have blocked jobs for longer than a minute. */
async function longBlocked({ limits }: Store, now: number) {
  const { items } = await limits.gates({ waiting: true }, { limit: GATES_MAX })
  return items
    .flatMap(({ gate, limit, key, blocked, blockedSince = now }) => {
      const forMs = now - blockedSince
      const kind = isRate(gate) ? 'throttle' : 'concurrency'
      const one = { limit: shortName(limit), ...(key !== undefined && { key }), kind }
      return blocked > 0 && forMs > BLOCKED_MS ? [{ ...one, blocked, forMs }] : []
    })
    .sort((a, b) => b.forMs - a.forMs)
    .slice(0, GATES_SHOWN)
}

/** Rates and times of the newest facts. */
async function recentOf(store: Store, now: number) {
  const facts: Fact[] = []
  let after: string | undefined
  do {
    const page = { order: 'newest', limit: PAGE, ...(after && { after }) } as const
    const found = await store.audit({}, page)
    facts.push(...found.items.map(({ fact }) => fact))
    after = found.next
  } while (after !== undefined && facts.length < FACTS_MAX && isWithin(facts.at(-1), now))
  const within = facts.filter((fact) => isWithin(fact, now))
  // Fewer facts than there are: the time that they span is what the rates are about.
  const isWhole = after === undefined || within.length < facts.length
  const windowMs = isWhole ? WINDOW_MS : Math.max(1, now - (within.at(-1)?.at ?? now))
  const timings = within.flatMap(({ timing }) => timing ?? [])
  return {
    windowMs,
    facts: within.length,
    enqueued: within.filter(({ trigger }) => trigger === 'create').length,
    started: within.filter(({ execution }) => execution?.statuses.includes('LEASED')).length,
    retried: within.filter(({ trigger }) => trigger === 'retry').length,
    succeeded: endedAs(within, 'succeeded'),
    failed: endedAs(within, 'failed'),
    cancelled: endedAs(within, 'cancelled'),
    waitMs: quantilesOf(timings.map(({ queueMs }) => queueMs)),
    runMs: quantilesOf(timings.map(({ durationMs }) => durationMs)),
  }
}

function isWithin(fact: Fact | undefined, now: number): boolean {
  return fact !== undefined && fact.at >= now - WINDOW_MS
}

function endedAs(facts: readonly Fact[], outcome: string): number {
  return facts.filter((fact) => fact.outcome === outcome).length
}

/** Null if nothing was measured. */
function quantilesOf(values: readonly number[]) {
  if (values.length === 0) return null
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? 0
  return { count: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}
