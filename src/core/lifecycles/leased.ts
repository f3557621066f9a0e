/**
 * Document 001. A job's state is a function of its executions (`job/executions.ts` has it): it
 * moves only when one of them is leased, aborted or done. The document derives no FAILED and
 * bounds nothing, so one edge is added: an aborted execution that is marked final fails the job.
 */
import { defineLifecycle } from './lifecycle.ts'

/** Document 001's lifecycle. */
export const leased = defineLifecycle({
  name: 'leased',
  version: 1,
  initial: 'PENDING',
  states: {
    PENDING: { role: 'ready', meaning: 'Created, not leased.' },
    RUNNING: { role: 'held', meaning: 'Leased by some execution.' },
    SUCCEEDED: { role: 'succeeded', meaning: 'An execution is DONE after COMMITTED.' },
    FAILED: { role: 'failed', meaning: 'The last execution was aborted for good.' },
  },
  edges: [
    { from: 'PENDING', to: 'RUNNING', on: ['claim', 'cancel'] },
    { from: 'RUNNING', to: 'SUCCEEDED', on: ['succeed'] },
    { from: 'RUNNING', to: 'PENDING', on: ['retry', 'expire', 'release'] },
    {
      from: 'RUNNING',
      to: 'FAILED',
      on: ['fail', 'give-up', 'reject', 'cancel'],
      because: 'the document names FAILED but derives it from nothing, and bounds no retries',
    },
  ],
})
