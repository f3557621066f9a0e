/**
 * An execution is one attempt at a job (the state-model requirements, R1). COMMITTED is the
 * boundary at which the effect of the job becomes valid. At most one execution of a job ever
 * reaches it (promise P3). An execution that ends before COMMITTED is ABORTED, with a reason. After
 * COMMITTED only DONE can follow.
 *
 * If the lease expires while the execution is LEASED, the handler never started, and the attempt
 * counts as a release. If it expires while the execution is IN_PROGRESS, the attempt counts as a
 * crash.
 */
import { defineMachine } from './machine/define.ts'

/** The machine of one attempt. */
export const executionMachine = defineMachine({
  name: 'execution',
  version: 1,
  initial: 'LEASED',
  sameState: 'noop',
  states: {
    LEASED: { meaning: 'A worker owns the lease until it expires.' },
    IN_PROGRESS: { meaning: 'The worker started the handler.' },
    COMMITTED: { meaning: 'The logical effect is applied; the idempotent boundary.' },
    DONE: { meaning: 'Finished after the commit.', terminal: true },
    ABORTED: { meaning: 'Ended before the commit.', terminal: true },
  },
  edges: [
    { from: 'LEASED', to: 'IN_PROGRESS', on: ['start'] },
    { from: 'IN_PROGRESS', to: 'COMMITTED', on: ['commit'] },
    { from: 'COMMITTED', to: 'DONE', on: ['done'] },
    { from: 'LEASED', to: 'ABORTED', on: ['abort'] },
    { from: 'IN_PROGRESS', to: 'ABORTED', on: ['abort'] },
  ],
})

export type ExecutionStatus = 'LEASED' | 'IN_PROGRESS' | 'COMMITTED' | 'DONE' | 'ABORTED'

/** Why an attempt ended before its commit. */
export type AbortReason =
  | 'error'
  | 'lease_expired'
  | 'timeout'
  | 'cancelled'
  | 'released'
  | 'invalid_input'
  | 'suspended'
  | 'forced'

/** Returns the id of an execution: the job's id and the attempt number. */
export function executionId(jobId: string, attempt: number): string {
  return `${jobId}/${attempt}`
}
