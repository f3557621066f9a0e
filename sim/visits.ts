/**
 * Visits: enqueues of job types with `rateLimit`, `debounce` and `singleton`, in one seed of four,
 * so that the histories of the other seeds stay what they were. What was created is judged by facts
 * alone: windows of rates, lives of singletons, and inputs of debounced jobs.
 */
import { defineJob, RateLimited, type RunnableJob, typed } from 'pawl'
import { fold, type Lifecycle } from 'pawl/rules'
import type { Store } from 'pawl/sqlite'
import type { Judged, Told } from './checker.ts'
import type { History } from './history.ts'
import type { Desk } from './people.ts'
import { comeBack, hasReturns, RETURNS, returningJob } from './returns.ts'

/** The seeds with visits. */
const hasVisits = (seed: number) => seed % 4 === 1

const VISITS = 16

const visitsOf = (seed: number) => (hasReturns(seed) ? RETURNS : hasVisits(seed) ? VISITS : 0)
const PAUSE_MS = 450
const RATE = { limit: 1, periodMs: 3000 }

/** A visit of which somebody was told that a job has its input. */
export interface Visit {
  readonly type: string
  readonly n: number
  readonly id: string
}

type Sleep = (ms: number) => Promise<void>
type VisitJob = RunnableJob<{ n: number }, { n: number }, unknown>
const keyOf = ({ n }: { readonly n: number }) => `key ${(n >> 2) % 2}`

/** The job types of visits. */
export function visitJobs(sleep: Sleep): VisitJob[] {
  const run = async ({ input }: { readonly input: { readonly n: number } }) => {
    await sleep((input.n * 397) % 1900)
    return input.n
  }
  const common = { input: typed<{ n: number }>(), crashesMax: 6, run } as const
  const { limit, periodMs: period } = RATE
  return [
    defineJob({ ...common, name: 'limited', rateLimit: { limit, period } }),
    defineJob({ ...common, name: 'debounced', debounce: { period: '1s', key: keyOf } }),
    defineJob({ ...common, name: 'single', singleton: { mode: 'skip', key: keyOf } }),
    defineJob({ ...common, name: 'newest', singleton: { mode: 'latest', key: keyOf } }),
    returningJob(sleep),
  ]
}

const TYPES = ['limited', 'debounced', 'single', 'newest']

/** Visits one after the other; a process that takes over goes on where the last one died. */
export async function visit(desk: Desk, seed: number, history: History): Promise<void> {
  const { timers } = desk.process.environment
  history.visitsLeft ??= visitsOf(seed)
  history.keepsKeys = hasReturns(seed)
  if (history.keepsKeys) return comeBack(desk, history)
  while (history.visitsLeft > 0) {
    await new Promise<void>((resolve) => timers.after(PAUSE_MS, resolve))
    const n = VISITS - history.visitsLeft
    const type = TYPES[n % TYPES.length] as string
    const definition = desk.jobs.find(({ name }) => name === type) as VisitJob
    try {
      const { id } = await desk.pawl.enqueue(definition, { n })
      history.visits.push({ type, n, id })
      history.visitsLeft--
    } catch (error) {
      history.expectTyped(error)
      // A request that was refused has its answer; any other is made again.
      if (error instanceof RateLimited) history.visitsLeft--
    }
  }
}

/** Judges what visits have created. */
export async function judgeVisits(
  told: readonly Told[],
  store: Store,
  visits: readonly Visit[],
  lifecycles: readonly Lifecycle[],
): Promise<Judged[]> {
  return [
    ...TYPES.flatMap((type) => judgeType(told, type, lifecycles)),
    ...(await judgeInputs(told, store, visits)),
  ]
}

/** P13: what was created of each key, by its own rule. */
function judgeType(
  told: readonly Told[],
  type: string,
  lifecycles: readonly Lifecycle[],
): Judged[] {
  const own = told.filter(({ job }) => job.type === type)
  if (type === 'limited') return judgeRate(own)
  return type === 'debounced' ? [] : judgeLives(own, type === 'single' ? 1 : 2, lifecycles)
}

/** Visits of one key follow each other; the key is in the input, which the facts do not have. */
const createdAt = ({ facts }: Told) => facts[0]?.at ?? 0

function judgeRate(own: readonly Told[]): Judged[] {
  const times = own.map(createdAt)
  const isFull = (from: number) =>
    times.filter((at) => at >= from && at < from + RATE.periodMs).length > RATE.limit
  const [first] = own.filter((one) => isFull(createdAt(one)))
  if (first === undefined) return []
  const what = 'began a window with more jobs than the limit'
  return [{ promise: 'P13', job: first.job.id, what, facts: first.facts }]
}

/** Of two keys with so many lives each, how many jobs were alive when one was created. */
function judgeLives(
  own: readonly Told[],
  perKey: number,
  lifecycles: readonly Lifecycle[],
): Judged[] {
  // What people, or the doctor, make of a job is not subject to admission.
  const untouched = own.filter(({ facts }) =>
    facts.every(({ actor }) => actor !== 'operator' && actor !== 'doctor'),
  )
  const isAlive = ({ facts }: Told, at: number) => {
    const before = facts.filter((fact) => fact.at <= at)
    const job = before.length === 0 ? null : fold(before)
    if (job === null || job.outcome !== null || job.blockedReason !== null) return false
    const { roles } = lifecycles.find(
      ({ name, version }) => name === job.lifecycle && version === job.lifecycleVersion,
    ) as Lifecycle
    return roles.get(job.state) !== 'parked'
  }
  return untouched.flatMap((one) => {
    const alive = untouched.filter((other) => isAlive(other, createdAt(one)))
    if (alive.length <= 2 * perKey) return []
    const what = `is one of ${alive.length} jobs of a singleton`
    return [{ promise: 'P13', job: one.job.id, what, facts: one.facts }]
  })
}

/** P1: the last input that was acknowledged for a job is its input, or a later one. */
async function judgeInputs(
  told: readonly Told[],
  store: Store,
  visits: readonly Visit[],
): Promise<Judged[]> {
  const judged: Judged[] = []
  for (const { job, facts } of told) {
    if (job.type !== 'debounced' && job.type !== 'newest') continue
    const last = visits.findLast(({ id }) => id === job.id)
    if (last === undefined) continue
    const { input = 'null' } = (await store.payloads(job.id)) ?? {}
    const { n } = (JSON.parse(input) ?? { n: -1 }) as { n: number }
    if (n >= last.n) continue
    judged.push({ promise: 'P1', job: job.id, what: `lost the input of visit ${last.n}`, facts })
  }
  return judged
}
