/** Counts what happened, from the facts alone. */

import type { Fact } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import { findLifecycle } from '../../core/lifecycles/index.ts'
import { checkFacts, checkP9 } from '../../core/promises.ts'
import type { Store } from '../../stores/contract/store.ts'

/** The table at the end of the demo. */
export interface Account {
  readonly jobs: number
  readonly executions: number
  /** Attempts whose worker died. */
  readonly crashes: number
  readonly retries: number
  readonly commits: number
  /** Jobs that were committed more than once. */
  readonly duplicates: number
  /** Jobs that have not succeeded. */
  readonly lost: number
  /** Broken promises in the facts of all jobs. */
  readonly findings: number
}

export async function account(store: Store): Promise<Account> {
  const jobs = await allJobs(store)
  const ledgers = await Promise.all(jobs.map(({ id }) => store.facts(id)))
  const count = (trigger: Fact['trigger']) =>
    ledgers.flat().filter((fact) => fact.trigger === trigger).length
  const committed = ledgers.filter((facts) => facts.some(({ trigger }) => trigger === 'commit'))
  return {
    jobs: jobs.length,
    executions: jobs.reduce((sum, { attempt }) => sum + attempt, 0),
    crashes: count('expire'),
    retries: count('retry'),
    commits: count('commit'),
    duplicates: count('commit') - committed.length,
    lost: jobs.filter(({ outcome }) => outcome !== 'succeeded').length,
    findings: jobs.flatMap((job, i) => findings(job, ledgers[i] ?? [])).length,
  }
}

function findings(job: Job, facts: readonly Fact[]) {
  const lifecycle = findLifecycle(job.lifecycle, job.lifecycleVersion)
  return [...checkFacts(lifecycle, facts), ...checkP9(job, facts)]
}

async function allJobs(store: Store): Promise<Job[]> {
  const jobs: Job[] = []
  let after: string | undefined
  do {
    const page = await store.list({}, { limit: 1000, ...(after !== undefined && { after }) })
    jobs.push(...page.items)
    after = page.next
  } while (after !== undefined)
  return jobs
}
