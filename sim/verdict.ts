/** The verdict on a seed: what its store holds in the end, compared with what was seen outside. */
import type { Job } from 'pawl'
import type { Store } from 'pawl/sqlite'
import {
  type Judged,
  judgeAcknowledged,
  judgeAnswers,
  judgeEffects,
  judgeJobs,
  judgeLeases,
  judgeRows,
  judgeSpread,
  judgeSteps,
  judgeSucceeded,
  readStore,
  type Told,
  type UserRow,
} from './checker.ts'
import { judgeChildren } from './children.ts'
import type { History } from './history.ts'
import { hasChildren } from './jobs.ts'
import type { Ledger } from './ledger.ts'
import type { SimLimits } from './limits.ts'
import { EVERY_LIFECYCLE, judgeMigrations } from './parcels.ts'
import { isOrdered } from './people.ts'
import { judgeReturns } from './returns.ts'
import { judgeVisits } from './visits.ts'

/** What is known of a seed besides its store. */
export interface Evidence {
  readonly history: History
  readonly ledger: Ledger
  /** The limits of the seed, if it has some. */
  readonly limits: SimLimits | undefined
  /** How far each job was when everybody had noticed that all is well. */
  readonly seqs: ReadonlyMap<string, number> | undefined
  /** Whether nothing that lasts beyond the faults can take a lease from its holder. */
  readonly areLeasesSafe: boolean
  /** Whether rows were damaged past the store. */
  readonly isDamaged: boolean
  /** The doctor's opinion. */
  readonly examine: (told: readonly Told[]) => Promise<readonly Judged[]>
}

/** Every job as it is in the end, and every promise that is broken. */
export interface Verdict {
  readonly told: readonly Told[]
  readonly violations: readonly Judged[]
}

/** The types whose handlers write a row of their own with their commit. */
const WRITES = new Set(['commits', 'approved', 'hardened', 'leased', 'task', 'sends', 'parcel'])

/** Judges a store in which nothing goes on any more. */
export async function judge(store: Store, evidence: Evidence): Promise<Verdict> {
  const { history, ledger, limits, seqs, areLeasesSafe, isDamaged, examine } = evidence
  const { acknowledged, pruned, outside, answers } = history
  const told = await readStore(store)
  const parked = (await store.listEffects({ state: 'parked' }, { limit: 500 })).items
  const now = store.now()
  const lost = ledger.check(pruned)
  // A damaged row may have lost its keys, or its lease. The last examination damages one, too.
  const limited = isDamaged ? [] : (limits?.judge(told, ledger) ?? [])
  const examined = await examine(told)
  const there = new Set(told.map(({ job }) => job.id))
  const isThere = (id: string) => there.has(id) || !pruned.has(id)
  const keys = outside.delivered.filter((key) => isThere(key.slice(0, key.indexOf('/'))))
  const rows = ledger.all<UserRow>('SELECT job, attempt FROM sim_rows')
  // What is parked waits for a person, and so does the job that declared it.
  const waits = new Set(parked.map(({ jobId }) => jobId))
  const isExcused = ({ promise, job }: Judged) => promise === 'P15' && waits.has(job)
  const violations = [
    ...judgeJobs(told, now, EVERY_LIFECYCLE).filter((judged) => !isExcused(judged)),
    ...judgeAcknowledged(
      told,
      [...acknowledged.keys()].filter(isThere).map((id) => ({ id })),
    ),
    // A job that a handler enqueues again after retention removed it has the same id.
    ...judgeAnswers(
      told,
      answers.filter(({ fact }) => !pruned.has(fact.jobId)),
    ),
    ...judgeRows(
      told,
      rows.filter(({ job }) => isThere(job)),
      ({ type }) => WRITES.has(type),
    ),
    ...judgeOrders(told, ledger.all<{ job: string }>('SELECT job FROM sim_orders'), isThere),
    ...judgeEffects(told, new Set([...keys, ...parked.map(({ key }) => key)]), 'mail'),
    ...judgeSteps(told, outside.stepped),
    ...judgeSpread(told, EVERY_LIFECYCLE),
    ...judgeMigrations(told),
    ...judgeChildren(told, owesChildren, pruned.size > 0),
    ...judgeThrown(told),
    ...(isDamaged ? [] : await judgeVisits(told, store, history.visits, EVERY_LIFECYCLE)),
    ...(isDamaged ? [] : judgeReturns(told, history)),
    ...lost,
    ...examined,
    ...judgeSucceeded(told, history.succeeded),
    ...(areLeasesSafe ? judgeLeases(told, seqs) : []),
    // The repair of a damaged row sets the end of a lease to that of its facts.
    ...(isDamaged ? [] : history.early),
    ...limited,
  ]
  return { told, violations }
}

/** The types of `WRITES` that do not send effects enqueue other jobs, by their numbers. */
function owesChildren({ job: { type, key, retryOf } }: Told): boolean {
  if (key === null || retryOf !== null || type === 'sends' || !WRITES.has(type)) return false
  return hasChildren(Number(key.slice('job '.length)))
}

/** What a handler threw is kept by the fact that closes its attempt. */
function judgeThrown(told: readonly Told[]): Judged[] {
  return told.flatMap(({ job, facts }) =>
    facts
      .filter(({ error, thrown }) => {
        return error?.name === 'Retryable' && error.message !== `Retryable: ${thrown?.message}`
      })
      .map(({ seq }) => {
        const what = `fact ${seq} lacks what the handler threw`
        return { promise: 'errors', job: job.id, what, facts }
      }),
  )
}

/** P1: a job and the order that was written in the same transaction are both there, or neither. */
function judgeOrders(
  told: readonly Told[],
  orders: readonly { readonly job: string }[],
  isThere: (id: string) => boolean,
): Judged[] {
  const ordered = new Set(orders.map(({ job }) => job))
  const known = new Set(told.map(({ job }) => job.id))
  const isOwed = ({ key, retryOf }: Job) => {
    return key !== null && retryOf === null && isOrdered(Number(key.slice('job '.length)))
  }
  return [
    ...told
      .filter(({ job }) => isOwed(job) && !ordered.has(job.id))
      .map(({ job, facts }) => ({ promise: 'P1', job: job.id, what: 'has no order', facts })),
    ...orders
      .filter(({ job }) => isThere(job) && !known.has(job))
      .map(({ job }) => ({ promise: 'P1', job, what: 'has an order and is no job', facts: [] })),
  ]
}
