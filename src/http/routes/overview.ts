/** The numbers of an overview. */
import { READ, type Route } from '../route.ts'
import { list, map, nullable, oneOf, record, ref, text, time, whole } from '../schema.ts'

const QUANTILES = nullable(record({ count: whole(), p50: whole(), p95: whole(), p99: whole() }))

const RECENT = record({
  windowMs: whole('the time that the numbers are about: five minutes, or less if much happened'),
  facts: whole('how many facts were looked at'),
  enqueued: whole(),
  started: whole('attempts that were claimed'),
  retried: whole(),
  succeeded: whole(),
  failed: whole(),
  cancelled: whole(),
  waitMs: QUANTILES,
  runMs: QUANTILES,
})

const ATTENTION = record({
  parkedJobs: whole(),
  parkedEffects: whole('counted up to 1000'),
  stalledJobs: whole('jobs whose recovery waits for an operator, counted up to 1000'),
  stuckHandlers: whole('handlers that go on although their lease is lost'),
  pausedQueues: whole(),
  unservedQueues: whole('queues with ready jobs and without a live worker'),
  missedTicks: whole('of schedules in the last day, among the last 200 ticks'),
  parkedFlows: whole('flows and batches with a parked job, counted up to 100'),
  longBlocked: list(
    record(
      {
        limit: text(),
        kind: oneOf(['concurrency', 'throttle']),
        blocked: whole(),
        forMs: whole(),
      },
      { key: text() },
    ),
    { description: 'limits that have blocked jobs for longer than a minute, longest first' },
  ),
})

export const routes: readonly Route[] = [
  {
    method: 'GET',
    path: '/api/v1/overview',
    operation: 'readOverview',
    summary: 'Counts, rates and times for an overview, and what needs a person.',
    details: 'Computed once a second at most, for all clients together.',
    roles: READ,
    answer: record({
      now: time('the time of the store when it was computed'),
      lanes: ref('Lanes'),
      ended: map(whole()),
      oldestReadyMs: nullable(whole('for how long the oldest ready job has been due')),
      queueCount: whole(),
      queues: list(ref('Queue'), { description: 'the 100 queues with most ready jobs' }),
      workers: record({
        live: whole(),
        running: whole(),
        concurrency: whole(),
        gone: whole('workers that have reported, and do so no longer'),
      }),
      recent: RECENT,
      attention: ATTENTION,
    }),
    run: ({ overview }) => overview(),
  },
]
