/**
 * Measurements of the database itself. They are the same in every process, so they are computed
 * when the text is asked for, and only the processes with an HTTP API have them.
 */

import type { Pawl } from '../engine/pawl.ts'
import type { Metric } from '../engine/watching/metrics.ts'
import { attributesOf, instrumentName } from '../engine/watching/opentelemetry-metrics.ts'
import { metricText, type Sample } from '../engine/watching/prometheus.ts'
import { VERSION } from '../environment/version.ts'
import type { LimitTotal } from '../stores/contract/limits.ts'
import type { Schedule } from '../stores/contract/schedules.ts'
import type { Store } from '../stores/contract/store.ts'

/** All measurements of the store. */
export const STORE_METRICS = {
  pawl_jobs: {
    kind: 'gauge',
    labels: ['queue', 'lane'],
    help: 'Jobs in the store by queue and lane.',
  },
  pawl_oldest_ready_age_seconds: {
    kind: 'gauge',
    labels: ['queue'],
    help: 'For how long the oldest ready job of a queue has been due; 0 if no job is ready.',
  },
  pawl_queue_paused: { kind: 'gauge', labels: ['queue'], help: '1 for queues that are paused.' },
  pawl_workers: {
    kind: 'gauge',
    labels: ['activity'],
    help: 'Workers of all processes by what they do.',
  },
  pawl_limit_value: {
    kind: 'gauge',
    labels: ['limit'],
    help:
      'How many jobs a limit lets run, or how many units of a throttle start in a period; for ' +
      'each key, if it has keys. Absent if a function of the input says.',
  },
  pawl_limit_in_use: {
    kind: 'gauge',
    labels: ['limit'],
    help: 'Jobs that run under a limit, over all of its keys.',
  },
  pawl_limit_blocked: {
    kind: 'gauge',
    labels: ['limit'],
    help: 'Jobs that a limit, a throttle or a group blocks, over all of its keys.',
  },
  pawl_limit_oldest_blocked_age_seconds: {
    kind: 'gauge',
    labels: ['limit'],
    help: 'For how long the first blocked job of a limit has been due; 0 if none is blocked.',
  },
  pawl_schedule_lateness_seconds: {
    kind: 'gauge',
    labels: ['schedule'],
    help: 'For how long the next tick of a schedule has been due; 0 if it is not due, or paused.',
  },
  pawl_schedule_paused: {
    kind: 'gauge',
    labels: ['schedule'],
    help: '1 for schedules that are paused.',
  },
  pawl_schedule_missed_ticks: {
    kind: 'gauge',
    labels: ['schedule'],
    help: 'Ticks that made no job within the last day, among the last 1000 records of ticks.',
  },
  pawl_retention_old_jobs: {
    kind: 'gauge',
    labels: [],
    help: 'Jobs that ended more than 30 days ago, counted up to 10,000.',
  },
  pawl_retention_keys: {
    kind: 'gauge',
    labels: [],
    help: 'Keys of removed jobs that are still taken, counted up to 10,000.',
  },
  pawl_build_info: { kind: 'gauge', labels: ['version'], help: 'The release of this process.' },
} as const satisfies Record<string, Metric>

const ACTIVITIES = ['working', 'idle', 'draining', 'gone']
/** Queues come from users; a scrape must stay small. */
const QUEUES_MAX = 1000

const LIMITS_MAX = 500
const SCHEDULES_MAX = 500
const TICKS_MAX = 1000
const COUNTED_MAX = 10_000
const DAY_MS = 86_400_000

type Samples = Readonly<Record<keyof typeof STORE_METRICS, readonly Sample[]>>

async function limitGauges(store: Store) {
  const totals = await store.limits.totals(LIMITS_MAX)
  const now = store.now()
  const of = (read: (total: LimitTotal) => number) =>
    totals.map((total) => ({ labels: { limit: total.limit }, value: read(total) }))
  return {
    pawl_limit_value: totals.flatMap(({ limit, max }) =>
      max === null ? [] : { labels: { limit }, value: max },
    ),
    pawl_limit_in_use: of(({ used }) => used),
    pawl_limit_blocked: of(({ blocked }) => blocked),
    pawl_limit_oldest_blocked_age_seconds: of(({ blockedSince = now }) =>
      secondsSince(blockedSince, now),
    ),
  } satisfies Partial<Samples>
}

async function scheduleGauges(store: Store) {
  const { items } = await store.schedules.list({ limit: SCHEDULES_MAX })
  const now = store.now()
  const ticks = await store.schedules.records({ kind: 'tick' }, { limit: TICKS_MAX })
  const missed = new Map<string, number>()
  for (const { schedule, action, at, ticks: count = 1 } of ticks.items) {
    if (action !== 'missed' || at < now - DAY_MS) continue
    missed.set(schedule, (missed.get(schedule) ?? 0) + count)
  }
  const of = (read: (schedule: Schedule) => number) =>
    items.map((one) => ({ labels: { schedule: one.name }, value: read(one) }))
  return {
    pawl_schedule_lateness_seconds: of(({ nextAt = now, pausedAt }) =>
      pausedAt === undefined ? secondsSince(nextAt, now) : 0,
    ),
    pawl_schedule_paused: of(({ pausedAt }) => (pausedAt === undefined ? 0 : 1)),
    pawl_schedule_missed_ticks: of(({ name }) => missed.get(name) ?? 0),
  } satisfies Partial<Samples>
}

async function retentionGauges(store: Store) {
  const old = await store.retention.countEnded(store.now() - 30 * DAY_MS, COUNTED_MAX)
  const keys = await store.retention.countKeys(COUNTED_MAX)
  return {
    pawl_retention_old_jobs: [{ labels: {}, value: old }],
    pawl_retention_keys: [{ labels: {}, value: keys }],
  } satisfies Partial<Samples>
}

function secondsSince(time: number, now: number): number {
  return Math.max(0, now - time) / 1000
}

/** The values of these measurements now. */
async function samplesOf({ queues, workers, store }: Pawl): Promise<Samples> {
  const all = (await queues.list()).slice(0, QUEUES_MAX)
  const reported = await workers.list()
  return {
    ...(await limitGauges(store)),
    ...(await scheduleGauges(store)),
    ...(await retentionGauges(store)),
    pawl_jobs: all.flatMap(({ name: queue, lanes }) =>
      Object.entries(lanes).map(([lane, value]) => ({ labels: { queue, lane }, value })),
    ),
    pawl_oldest_ready_age_seconds: all.map(({ name: queue, oldestReadyMs = 0 }) => ({
      labels: { queue },
      value: oldestReadyMs / 1000,
    })),
    pawl_queue_paused: all.map(({ name: queue, pausedAt }) => ({
      labels: { queue },
      value: pausedAt === undefined ? 0 : 1,
    })),
    pawl_workers: ACTIVITIES.map((activity) => ({
      labels: { activity },
      value: reported.filter((worker) => worker.activity === activity).length,
    })),
    pawl_build_info: [{ labels: { version: VERSION }, value: 1 }],
  }
}

const NAMES = Object.keys(STORE_METRICS) as (keyof typeof STORE_METRICS)[]

/** Reads the measurements of the store, and writes them in the text format of Prometheus. */
export async function storeMetricsText(pawl: Pawl): Promise<string> {
  const samples = await samplesOf(pawl)
  return NAMES.map((name) => metricText(name, STORE_METRICS[name], samples[name])).join('')
}

/** A gauge of OpenTelemetry whose value is asked for. */
type ObservableLike = object

/** What is called when the values of gauges are needed. */
type Observing = (result: {
  observe(gauge: ObservableLike, value: number, attributes: Record<string, string>): void
}) => Promise<void>

/** A meter of `@opentelemetry/api`, as far as values of the store need it. */
export interface ObservingMeter {
  createObservableGauge(name: string, options: { description: string }): ObservableLike
  addBatchObservableCallback(callback: Observing, gauges: ObservableLike[]): void
  removeBatchObservableCallback(callback: Observing, gauges: ObservableLike[]): void
}

/**
 * Reads the measurements of the store whenever the meter collects. Call it in one process. Returns
 * a function that ends it.
 */
export function observeStoreMetrics(meter: ObservingMeter, pawl: Pawl): () => void {
  const gauges = new Map(
    NAMES.map((name) => {
      const { help } = STORE_METRICS[name]
      return [name, meter.createObservableGauge(instrumentName(name), { description: help })]
    }),
  )
  const observing: Observing = async (result) => {
    for (const [name, samples] of Object.entries(await samplesOf(pawl))) {
      const gauge = gauges.get(name as keyof Samples)
      for (const { labels, value } of samples) {
        if (gauge !== undefined) result.observe(gauge, value, attributesOf(labels))
      }
    }
  }
  const all = [...gauges.values()]
  meter.addBatchObservableCallback(observing, all)
  return () => meter.removeBatchObservableCallback(observing, all)
}
