/**
 * Document 001's execution: one attempt at a job. COMMITTED is the boundary at which the job's
 * effect becomes true, and at most one execution of a job ever reaches it (promise P3). An
 * execution that ends before it is ABORTED, with a reason; after it nothing is left but DONE.
 *
 * An expired lease is a give-back while the execution is LEASED (the handler never started), and a
 * crash once it is IN_PROGRESS.
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

/** Where an attempt stands. */
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

/** The id of an execution: the job's id and the number of the attempt. */
export function executionId(jobId: string, attempt: number): string {
  return `${jobId}/${attempt}`
}
