/**
 * The task of the worker-loop requirements (R3). An exception is final. Only an expired lease puts
 * a task back, while try_count < max_tries. Here try_count = attempts − releases over the whole
 * life of the task, so a task that an operator resets after its last try gets one more try. In R3,
 * exhausted tasks stay in `running`; here they end in `error`.
 */
import { defineLifecycle } from './lifecycle.ts'

/** The task lifecycle of the worker-loop requirements (R3). */
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
