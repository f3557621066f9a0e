/** Outcomes of other jobs as options of `runJob`: of dependencies and of invoked jobs. */
import type { JobError } from '../core/job/job.ts'
import { encodeValue } from '../core/values.ts'
import type { AfterGroup } from '../engine/flows/after.ts'
import type { AfterEnds, DependencyEnd, InvokeRequest } from '../stores/contract/flows.ts'
import { invokedId, nodeId } from '../stores/derived-ids.ts'

/** How another job ended. */
export type GivenOutcome =
  | { readonly kind: 'succeeded'; readonly output: unknown }
  | { readonly kind: 'failed'; readonly reason?: string; readonly error?: JobError }
  | { readonly kind: 'cancelled'; readonly reason?: string }

/** The outcomes of the jobs of one `invoke` or `invokeMany`, in order. */
export interface RunJobChildren {
  readonly name: string
  /** The n-th call of this name; 1 if absent. */
  readonly n?: number
  readonly outcomes: readonly GivenOutcome[]
}

/** The jobs that a handler waits for, because their outcomes were not given. */
export interface RunJobInvoked {
  readonly name: string
  readonly n: number
  readonly type: string
  readonly count: number
}

/** What the store would say of the jobs that a job comes after. */
export function givenAfter(
  jobId: string,
  groups: readonly AfterGroup[],
  after: Readonly<Record<string, unknown>>,
): AfterEnds[] {
  return groups.flatMap(({ name, type, need, isList }) => {
    if (!Object.hasOwn(after, name)) return []
    const values = isList ? (after[name] as readonly unknown[]) : [after[name]]
    const ends = values.map((value, n) => {
      const outcome =
        need === 'end' ? (value as GivenOutcome) : ({ kind: 'succeeded', output: value } as const)
      return endOf(nodeId(jobId, n, name), type, outcome)
    })
    return [{ name, need, list: isList, ends }]
  })
}

/** How given children ended; undefined if they were not given. */
export function givenEnds(
  { id, name, n, children }: InvokeRequest,
  given: readonly RunJobChildren[],
): DependencyEnd[] | undefined {
  const found = given.find((one) => one.name === name && (one.n ?? 1) === n)
  if (found === undefined || found.outcomes.length < children.length) return undefined
  return children.map(({ command }, i) => {
    return endOf(invokedId(id, name, n, i), command.type, found.outcomes[i] as GivenOutcome)
  })
}

function endOf(id: string, type: string, outcome: GivenOutcome): DependencyEnd {
  const own = { id, type, outcome: outcome.kind, seq: 1 } as const
  if (outcome.kind === 'succeeded') {
    return { ...own, result: encodeValue(outcome.output), error: null, reason: null }
  }
  const error = outcome.kind === 'failed' ? (outcome.error ?? null) : null
  return { ...own, error, reason: outcome.reason ?? null }
}
