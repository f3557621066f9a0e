/** What a job waits for, and the signals of its type, for routes and commands. */
import type { Job } from '../core/job/job.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import { approval } from '../engine/approvals.ts'
import {
  type AnySignal,
  checkDeclared,
  defineSignal,
  type JsonSchemaObject,
} from '../engine/define-signal.ts'
import type { Pawl } from '../engine/pawl.ts'
import type { WaitHistory, WaitRecord } from '../stores/contract/waits.ts'

/**
 * Returns the wait of a job that waits now. A job that was woken, has ended or is parked has a wait
 * without an end as well, so its state counts.
 */
export function currentWait(
  lifecycles: readonly Lifecycle[],
  job: Job,
  { waits }: WaitHistory,
): WaitRecord | undefined {
  const lifecycle = lifecycles.find(
    ({ name, version }) => name === job.lifecycle && version === job.lifecycleVersion,
  )
  if (job.state !== lifecycle?.targets.get('wait')) return undefined
  return waits.findLast(({ end }) => end === undefined)
}

/**
 * A signal of this name for a job. If this process knows the job type, the type must declare it,
 * and its schema checks the payload. Throws `SignalUndeclared`.
 */
export async function signalFor(pawl: Pawl, jobId: string, name: string): Promise<AnySignal> {
  const job = await pawl.store.get(jobId)
  const definition = job && pawl.internals.jobs.get(job.type)
  if (definition === undefined) return defineSignal({ name })
  checkDeclared(definition, { name })
  return definition.signals.find((one: AnySignal) => one.name === name) as AnySignal
}

/** The JSON Schema of a signal of a job type; undefined if this process does not know one. */
export function schemaOf(pawl: Pawl, type: string, signal: string): JsonSchemaObject | undefined {
  if (signal === approval.name) return approval.jsonSchema
  const signals: readonly AnySignal[] = pawl.internals.jobs.get(type)?.signals ?? []
  return signals.find(({ name }) => name === signal)?.jsonSchema
}
