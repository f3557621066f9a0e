/**
 * The lifecycle of the hardening requirements (R0), with exactly its table. The edge running →
 * pending is only in the diagram of R0, so it does not exist here.
 *
 * - A failed job waits for its retry in `failed`.
 * - A job that is given up, rejected or cancelled passes through `failed` to `quarantined` in one
 *   step.
 * - A stalled job goes running → failed → pending in one step and waits 60 seconds in pending. The
 *   recovery of R0 does the same in two steps.
 */
import { defineLifecycle } from './lifecycle.ts'

/** The lifecycle of the hardening requirements (R0). */
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
