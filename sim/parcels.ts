/**
 * Two versions of one lifecycle: a release with the second replaces one with the first while jobs
 * are under way. Most states get other names, so that a state that was not mapped is seen.
 */
import type { Lifecycle } from 'pawl'
import { defineLifecycle, type JobTrigger, LIFECYCLES } from 'pawl/rules'
import type { Judged, Told } from './checker.ts'

/** What the states of a version are called. */
interface Names<S extends string> {
  readonly ready: S
  readonly held: S
  readonly waiting: S
  readonly parked: S
  readonly done: S
  readonly failed: S
}

function statesOf<S extends string>({ ready, held, waiting, parked, done, failed }: Names<S>) {
  return {
    [ready]: { role: 'ready', meaning: 'Waits for a courier.' },
    [held]: { role: 'held', meaning: 'Is carried.' },
    [waiting]: { role: 'waiting', meaning: 'Is carried again later.' },
    [parked]: { role: 'parked', meaning: 'Waits for a person.' },
    [done]: { role: 'succeeded', meaning: 'Has arrived.' },
    [failed]: { role: 'failed', meaning: 'Does not arrive.' },
  } as Parameters<typeof defineLifecycle<S, JobTrigger>>[0]['states']
}

function edgesOf<S extends string>({ ready, held, waiting, parked, done, failed }: Names<S>) {
  const edge = (from: S, to: S, ...on: JobTrigger[]) => ({ from, to, on })
  return [
    edge(ready, held, 'claim'),
    edge(held, done, 'succeed'),
    edge(held, ready, 'release'),
    edge(held, waiting, 'retry', 'expire'),
    edge(waiting, ready, 'due', 'run-now'),
    edge(held, failed, 'fail', 'cancel'),
    edge(ready, failed, 'cancel'),
    edge(waiting, failed, 'cancel'),
    edge(parked, failed, 'cancel'),
    edge(held, parked, 'give-up', 'reject', 'park'),
    edge(ready, parked, 'park'),
    edge(waiting, parked, 'park'),
    { ...edge(parked, ready, 'redrive'), operator: true },
    { ...edge(failed, ready, 'redrive'), operator: true },
  ]
}

const FIRST = {
  ready: 'packed',
  held: 'underway',
  waiting: 'missed',
  parked: 'stuck',
  done: 'delivered',
  failed: 'lost',
} as const
const SECOND = {
  ready: 'ready',
  held: 'carried',
  waiting: 'again',
  parked: 'stuck',
  done: 'delivered',
  failed: 'failed',
} as const
const MAPPING = { packed: 'ready', underway: 'carried', missed: 'again', lost: 'failed' } as const

const policy = { retry: { max: 3, delayMs: 1000, jitter: 0 }, crashesMax: 6 } as const

const parcel1 = defineLifecycle({
  name: 'parcel',
  version: 1,
  initial: FIRST.ready,
  states: statesOf(FIRST),
  edges: edgesOf(FIRST),
  policy,
})

const parcel2 = defineLifecycle({
  name: 'parcel',
  version: 2,
  initial: SECOND.ready,
  states: statesOf(SECOND),
  edges: edgesOf(SECOND),
  policy,
  from: { 1: MAPPING },
})

/** The version of a release: 1 of one that is replaced, 2 of the one that replaces it. */
export type Release = 1 | 2

/** The lifecycle of parcels in a release. */
export function parcelOf(release: Release): Lifecycle {
  return release === 1 ? parcel1 : parcel2
}

/** What a process of a release knows. */
export function lifecyclesOf(release: Release): readonly Lifecycle[] {
  return [...LIFECYCLES, parcelOf(release)]
}

/** What the judge knows: every version. */
export const EVERY_LIFECYCLE: readonly Lifecycle[] = [...LIFECYCLES, parcel1, parcel2]

/**
 * P2: a job changes its version by facts alone, once, and into the state that the mapping names.
 * The mapping is read here and not by the engine, which may be what is wrong.
 */
export function judgeMigrations(told: readonly Told[]): Judged[] {
  const mapped: Readonly<Record<string, string>> = MAPPING
  return told.flatMap(({ job, facts }) => {
    if (job.lifecycle !== 'parcel') return []
    const judged = (what: string): Judged => ({ promise: 'P2', job: job.id, what, facts })
    const hops = facts.filter(({ trigger }) => trigger === 'migrate')
    const before = facts[0]?.created?.lifecycleVersion ?? job.lifecycleVersion
    const isTold = hops.length === job.lifecycleVersion - before
    const strays = hops.filter(({ from, to }) => to !== (mapped[from ?? ''] ?? from))
    return [
      ...(isTold ? [] : [judged(`changed its version by ${hops.length} facts`)]),
      ...strays.map(({ from, to }) => judged(`was migrated from ${from} to ${to}`)),
    ]
  })
}
