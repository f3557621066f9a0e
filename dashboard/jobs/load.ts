/** A job with its facts, and the same job at any of them. */
import { type Change, changesBetween } from '../../src/audit/diff.ts'
import { evolve } from '../../src/core/job/evolve.ts'
import { type Execution, executionsOf } from '../../src/core/job/executions.ts'
import type { Fact } from '../../src/core/job/facts.ts'
import type { Job } from '../../src/core/job/job.ts'
import { type Answer, call } from '../api/client.ts'

export interface JobData
  extends Pick<Answer<'showJob'>, 'lane' | 'explanation' | 'input' | 'result' | 'progress'> {
  readonly job: Job
  /** In order; the last ones if the job has very many. */
  readonly facts: readonly Fact[]
  /** The job before the first of `facts`; null if that one created it. */
  readonly base: Job | null
}

/** A job as it was after one of its facts. */
export interface Moment {
  readonly at: number
  readonly isNow: boolean
  readonly job: Job
  /** The facts until then, and those that came later. */
  readonly facts: readonly Fact[]
  readonly later: readonly Fact[]
  /** What the fact changed. */
  readonly changes: readonly Change[]
  readonly executions: readonly Execution[]
}

const FACTS_MAX = 1000

export async function loadJob(id: string, signal: AbortSignal): Promise<JobData> {
  const shown = await call('showJob', { params: { id } }, signal)
  const query = { order: 'newest', limit: FACTS_MAX } as const
  const { items } = await call('listJobFacts', { params: { id }, query }, signal)
  const facts = items.map(({ fact }) => fact as unknown as Fact).reverse()
  const first = facts[0]?.seq ?? 1
  const params = { id, seq: String(first - 1) }
  const base = first > 1 ? (await call('showJobAt', { params }, signal)).job : null
  return { ...shown, job: shown.job as Job, facts, base: base as Job | null }
}

/** Folds the facts up to `wanted`; the job as it is now if that is absent or its last fact. */
export function asOf({ job, facts, base }: JobData, wanted: number | undefined): Moment {
  const first = facts[0]?.seq ?? 1
  const last = facts.at(-1)?.seq ?? job.seq
  const at = Math.min(last, Math.max(first, wanted ?? last))
  const isNow = at === last
  const until = facts.filter(({ seq }) => seq <= at)
  const before = fold(base, until.slice(0, -1))
  const then = fold(base, until) ?? job
  return {
    at,
    isNow,
    // Only the store knows the present end of a lease.
    job: isNow ? job : then,
    facts: until,
    later: facts.filter(({ seq }) => seq > at),
    changes: changesBetween(before ?? {}, then).filter(
      ({ path }) => !QUIET.includes(path[0] ?? ''),
    ),
    executions: executionsOf(until),
  }
}

/** They change with every fact. */
const QUIET: readonly string[] = ['seq', 'updatedAt']

/** Undefined if the facts do not follow from each other; the doctor finds that. */
function fold(base: Job | null, facts: readonly Fact[]): Job | undefined {
  try {
    let job = base
    for (const fact of facts) job = evolve(job, fact)
    return job ?? undefined
  } catch {
    return undefined
  }
}
