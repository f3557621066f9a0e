/**
 * Follows a chain of jobs that wait for each other to its end, and says what would release it. The
 * chain is followed through the job that most needs a person: one that has failed, then one that is
 * parked, then the first one.
 */
import type { Job } from '../../core/job/job.ts'
import { DEPENDENCY_FAILED, LINKS } from '../../core/job/links.ts'
import type { Store } from '../../stores/contract/store.ts'
import { counted } from './words.ts'

/** The jobs that a job waits for, directly and through others. */
export interface Chain {
  /** From the job that it waits for to the end of the chain. */
  readonly jobs: readonly [Job, ...Job[]]
  /** How many jobs it waits for itself; at least so many if `more` is true. */
  readonly open: number
  readonly more: boolean
}

/** Chains are as long as flows have nodes; longer ones than this are cut. */
const LENGTH_MAX = 100
/** How many of the jobs that one job waits for are looked at. */
const WIDTH_MAX = 100

/** The chain of a job; undefined if it waits for no other job. */
export async function chainOf(store: Store, job: Job): Promise<Chain | undefined> {
  if (!isWaiting(job)) return undefined
  const first = await awaitedBy(store, job, WIDTH_MAX + 1)
  const jobs: Job[] = []
  let next = mostUrgent(first)
  while (next !== undefined && jobs.length < LENGTH_MAX) {
    jobs.push(next)
    if (!isWaiting(next)) break
    next = mostUrgent(await awaitedBy(store, next, WIDTH_MAX))
  }
  const [head, ...rest] = jobs
  if (head === undefined) return undefined
  const open = Math.min(first.length, WIDTH_MAX)
  return { jobs: [head, ...rest], open, more: first.length > WIDTH_MAX }
}

/** A job that is parked because of another one waits for that one. */
async function awaitedBy(store: Store, job: Job, limit: number): Promise<readonly Job[]> {
  if (job.blockedReason !== DEPENDENCY_FAILED) return store.flows.waitsFor(job.id, limit)
  const facts = await store.facts(job.id)
  const cause = facts.findLast(({ dependency }) => dependency !== undefined)?.dependency
  const found = cause === undefined ? undefined : await store.get(cause)
  return found === undefined ? store.flows.waitsFor(job.id, limit) : [found]
}

function isWaiting({ links, outcome }: Job): boolean {
  return outcome === null && (links & LINKS.waits) !== 0
}

function mostUrgent(jobs: readonly Job[]): Job | undefined {
  const stopped = (job: Job) => job.outcome === 'failed' || job.outcome === 'cancelled'
  const parked = (job: Job) => job.outcome === null && job.blockedReason !== null
  return jobs.find(stopped) ?? jobs.find(parked) ?? jobs[0]
}

/** What a job waits for, in a sentence; `end` is the explanation of the end of the chain. */
export function sayChain(job: Job, { jobs, open, more }: Chain, end: string): string {
  const [first] = jobs
  const last = jobs[jobs.length - 1] as Job
  const others = more ? `more than ${open - 1}` : String(open - 1)
  const and = open > 1 ? ` and ${others} more` : ''
  const what = `job ${first.id} (${first.type})`
  const begin =
    job.blockedReason === DEPENDENCY_FAILED
      ? `It is parked because ${what} did not succeed, and goes on by itself when that one does`
      : `It waits for ${what}${and}`
  if (jobs.length === 1) return `${begin}. Of that job: ${end}`
  const between = counted(jobs.length - 1, 'job')
  return `${begin}, and through ${between} for job ${last.id} (${last.type}). Of that job: ${end}`
}
