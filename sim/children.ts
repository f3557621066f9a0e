/**
 * Judges jobs that handlers enqueue. A call outside of a commit enqueues one job, however often the
 * attempt is repeated. A call in a commit enqueues a job if, and only if, the attempt commits. The
 * first fact of such a job names the job that enqueued it, and the name and number of the call if
 * it was outside of a commit.
 */
import { isCommitted } from 'pawl/rules'
import type { Judged, Told } from './checker.ts'

/** The type of the jobs that others enqueue. */
export const CHILD = 'child'
/** The name of the call before the work. */
export const EARLY_CHILD = 'early'

interface Family {
  readonly early: Told[]
  readonly committed: Told[]
}

/** `owes` says which jobs enqueue others; nothing is missed if jobs were removed. */
export function judgeChildren(
  told: readonly Told[],
  owes: (parent: Told) => boolean,
  isPruned: boolean,
): Judged[] {
  const families = familiesOf(told)
  return told.flatMap((parent) => {
    const { early = [], committed = [] } = families.get(parent.job.id) ?? {}
    const hasCommitted = isCommitted(parent.job)
    const isOwed = hasCommitted && owes(parent) && !isPruned
    const { id } = parent.job
    return [
      ...expectCount(id, 'early', early, isOwed ? 1 : 0, 1),
      ...expectCount(id, 'in its commit', committed, isOwed ? 1 : 0, hasCommitted ? 1 : 0),
    ]
  })
}

function familiesOf(told: readonly Told[]): Map<string, Family> {
  const families = new Map<string, Family>()
  for (const one of told) {
    const { enqueuedBy, enqueuedAs } = one.facts[0]?.metadata ?? {}
    if (one.job.type !== CHILD || enqueuedBy === undefined) continue
    const family = families.get(enqueuedBy) ?? { early: [], committed: [] }
    families.set(enqueuedBy, family)
    if (enqueuedAs === undefined) family.committed.push(one)
    else family.early.push(one)
  }
  return families
}

function expectCount(
  job: string,
  when: string,
  children: readonly Told[],
  least: number,
  most: number,
): Judged[] {
  const { length } = children
  if (length >= least && length <= most) return []
  const facts = children.flatMap((child) => child.facts)
  const what = `has ${length} children that were enqueued ${when}, not ${least} to ${most}`
  return [{ promise: 'children', job, what, facts }]
}
