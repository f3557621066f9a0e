/**
 * What a worker declares of the job types that it runs. The store then knows their lifecycle,
 * queue, policy and limits, and can accept jobs from callers that have no code of them.
 */
import type { JsonBounds } from '../core/canonical-json.ts'
import type { JobTypeDeclaration } from '../stores/contract/job-types.ts'
import type { AnyJob } from './job-types.ts'

/** The declaration of a job type, with the bounds of the process. */
export function declarationOf(definition: AnyJob, bounds: JsonBounds): JobTypeDeclaration {
  const { lifecycle, queue, priority, aheadMs, timeoutMs, policy, limits, admission } = definition
  const limitKeys = limits?.fixedKeys
  const isKeyed = limits !== undefined && limitKeys === undefined
  const needs = isKeyed ? 'limit-keys' : admission === undefined ? undefined : 'admission'
  return {
    lifecycle,
    bounds,
    command: {
      type: definition.name,
      queue,
      ...(priority !== 0 && { priority }),
      ...(aheadMs > 0 && { aheadMs }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(limitKeys !== undefined && { limitKeys }),
      ...(policy !== undefined && { policy }),
    },
    ...(needs !== undefined && { needs }),
  }
}
