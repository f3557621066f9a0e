/** Reads how the jobs ended that a job comes after, and those that it has invoked. */
import type { AfterEnds, DependencyEnd } from '../../stores/contract/flows.ts'
import { DependencyUnmet } from '../errors.ts'
import type { ChildOutcome } from '../outcome.ts'
import { readResult } from '../stored-values.ts'
import type { AfterGroup } from './after.ts'

/** The outcome of a job that has ended; undefined if it has not. */
export function childOutcomeOf(end: DependencyEnd): ChildOutcome | undefined {
  const { id: jobId, outcome, reason, error } = end
  switch (outcome) {
    case 'succeeded':
      return { kind: 'succeeded', jobId, output: readResult(jobId, end.result) }
    case 'failed':
      return { kind: 'failed', jobId, reason, error }
    case 'cancelled':
      return { kind: 'cancelled', jobId, reason }
    default:
      return undefined
  }
}

/**
 * The values of `after` in the context of a handler. Throws `DependencyUnmet` if the job was made
 * or forced to run without them.
 */
export function afterValuesOf(
  jobId: string,
  groups: readonly AfterGroup[],
  ends: readonly AfterEnds[],
): Readonly<Record<string, unknown>> {
  const values = groups.map((group) => {
    const found = ends.find(({ name }) => name === group.name)
    if (found === undefined) throw new DependencyUnmet(jobId, group.name)
    const own = found.ends.map((end) => valueFor(jobId, group, end))
    if (!group.isList && own.length !== 1) throw new DependencyUnmet(jobId, group.name)
    return [group.name, group.isList ? own : own[0]] as const
  })
  return Object.freeze(Object.fromEntries(values))
}

function valueFor(jobId: string, { name, need }: AfterGroup, end: DependencyEnd): unknown {
  const outcome = childOutcomeOf(end)
  if (outcome === undefined) throw new DependencyUnmet(jobId, name, end.id)
  if (need === 'end') return outcome
  if (outcome.kind === 'succeeded') return outcome.output
  throw new DependencyUnmet(jobId, name, end.id)
}
