/**
 * Document 003's task. An exception is final; only an expired lease puts a task back, while
 * try_count < max_tries, where try_count = attempts − give-backs, counted over the task's whole
 * life: a task that an operator reset after its last try has one more. The document left exhausted
 * tasks running for ever; here they end in error.
 */
import { defineLifecycle } from './lifecycle.ts'

/** Document 003's task lifecycle. */
export const task = defineLifecycle({
  name: 'task',
  version: 1,
  initial: 'pending',
  states: {
    pending: { role: 'ready', meaning: 'Available to be claimed.' },
    running: { role: 'held', meaning: 'Claimed by a worker until its lease times out.' },
    done: { role: 'succeeded', meaning: 'Processed; never picked up again.' },
    error: { role: 'failed', meaning: 'Failed; terminal unless an operator resets it.' },
  },
  edges: [
    { from: 'pending', to: 'running', on: ['claim', 'cancel'] },
    { from: 'running', to: 'done', on: ['succeed'] },
    { from: 'running', to: 'error', on: ['fail', 'give-up', 'reject', 'cancel'] },
    { from: 'running', to: 'pending', on: ['expire', 'release'] },
    { from: 'error', to: 'pending', on: ['redrive'], operator: true },
  ],
  policy: { retry: { max: 0, jitter: 0 }, crashesMax: 2 },
  retryFixed: true,
  crash: { spends: 'crash', delayMs: 0, everCounted: true },
})
