/**
 * Document 000. Its table holds exactly, and its diagram's running → pending is not in it. A failed
 * job waits out its retry delay in `failed`; a job that is given up, refused or cancelled passes
 * through `failed` into `quarantined` in the same step. A stalled job goes running → failed →
 * pending in one step and waits 60 seconds there, as the document's recovery does in two.
 */
import { defineLifecycle } from './lifecycle.ts'

/** Document 000's lifecycle. */
export const hardened = defineLifecycle({
  name: 'hardened',
  version: 1,
  initial: 'pending',
  states: {
    pending: { role: 'ready', meaning: 'Queued, awaiting execution.' },
    running: { role: 'held', meaning: 'Currently executing.' },
    succeeded: { role: 'succeeded', meaning: 'Completed successfully.' },
    failed: { role: 'waiting', meaning: 'Failed; waits for its retry.' },
    quarantined: { role: 'parked', meaning: 'Failed permanently; an operator may retry it.' },
  },
  edges: [
    { from: 'pending', to: 'running', on: ['claim', 'cancel', 'park'] },
    { from: 'running', to: 'succeeded', on: ['succeed'] },
    {
      from: 'running',
      to: 'failed',
      on: ['retry', 'fail', 'give-up', 'reject', 'expire', 'release', 'cancel', 'park'],
    },
    { from: 'failed', to: 'pending', on: ['due', 'run-now', 'expire', 'release'] },
    {
      from: 'failed',
      to: 'quarantined',
      on: ['fail', 'give-up', 'reject', 'cancel', 'park'],
    },
    { from: 'quarantined', to: 'pending', on: ['redrive'], operator: true },
  ],
  crash: { spends: 'crash', delayMs: 60_000 },
})
