/**
 * The lifecycle of the job-lifecycle requirements (R2), with exactly its table.
 *
 * - Three retries with a fixed delay of one second; the policy cannot be overridden.
 * - A delayed job stays CREATED until it is due.
 * - An expired lease is a retryable failure.
 * - RUNNING → QUEUED is forbidden. A released job passes through RETRYING in the same step, without
 *   a delay and without spending a retry.
 * - Cancellation ends in FAILED, through QUEUED if there is no direct edge.
 */
import { defineLifecycle } from './lifecycle.ts'

/** The lifecycle of the job-lifecycle requirements (R2). */
export const document = defineLifecycle({
  name: 'document',
  version: 1,
  initial: 'CREATED',
  states: {
    CREATED: { role: 'idle', meaning: 'Created, not yet submitted, or not yet due.' },
    QUEUED: { role: 'ready', meaning: 'Waiting in the processing queue.' },
    RUNNING: { role: 'held', meaning: 'Actively being processed.' },
    RETRYING: { role: 'waiting', meaning: 'Scheduled for retry after a transient failure.' },
    SUCCEEDED: { role: 'succeeded', meaning: 'Completed successfully.' },
    FAILED: { role: 'failed', meaning: 'Failed permanently.' },
  },
  edges: [
    { from: 'CREATED', to: 'QUEUED', on: ['submit', 'due', 'cancel', 'run-now'] },
    { from: 'QUEUED', to: 'RUNNING', on: ['claim'] },
    { from: 'RUNNING', to: 'SUCCEEDED', on: ['succeed'] },
    { from: 'RUNNING', to: 'FAILED', on: ['fail', 'give-up', 'reject', 'cancel'] },
    { from: 'RUNNING', to: 'RETRYING', on: ['retry', 'expire', 'release'] },
    { from: 'RETRYING', to: 'QUEUED', on: ['due', 'release', 'cancel'] },
    { from: 'QUEUED', to: 'FAILED', on: ['exhaust', 'cancel'] },
  ],
  policy: { retry: { max: 3, backoff: 'fixed', delayMs: 1000, jitter: 0 } },
  retryFixed: true,
  crash: { spends: 'failure', delayMs: 'as-retry' },
})
