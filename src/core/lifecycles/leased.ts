/**
 * The lifecycle of the state-model requirements (R1). The state of a job is a function of its
 * executions (`job/executions.ts`): it changes only when an execution is leased, aborted or done.
 * R1 names FAILED but has no rule that leads to it, and does not bound retries. One edge is
 * therefore added: an aborted execution that is marked final fails the job.
 */
import { defineLifecycle } from './lifecycle.ts'

/** The lifecycle of the state-model requirements (R1). */
export const leased = defineLifecycle({
  name: 'leased',
  version: 1,
  initial: 'PENDING',
  states: {
    PENDING: { role: 'ready', meaning: 'Created, not leased.' },
    RUNNING: { role: 'held', meaning: 'Leased by some execution.' },
    SUCCEEDED: { role: 'succeeded', meaning: 'An execution is DONE after COMMITTED.' },
    FAILED: { role: 'failed', meaning: 'The last execution was aborted and marked final.' },
  },
  edges: [
    { from: 'PENDING', to: 'RUNNING', on: ['claim', 'cancel'] },
    { from: 'RUNNING', to: 'SUCCEEDED', on: ['succeed'] },
    { from: 'RUNNING', to: 'PENDING', on: ['retry', 'expire', 'release'] },
    {
      from: 'RUNNING',
      to: 'FAILED',
      on: ['fail', 'give-up', 'reject', 'cancel'],
      because: 'R1 names FAILED but has no rule that leads to it, and does not bound retries',
    },
  ],
})
