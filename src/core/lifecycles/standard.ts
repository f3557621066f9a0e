/**
 * The default lifecycle. It combines the requirements R0 to R4 and has a separate state for each
 * thing that a job can wait for. An operator can redrive failed and quarantined jobs. Succeeded and
 * cancelled jobs never change.
 */
import { defineLifecycle } from './lifecycle.ts'

const RESCHEDULE = 'an operator or client may change the due time'
const WAIT = 'a job that sleeps or waits for a signal occupies no slot and spends no budget'
const PARK = 'an operator may park any job that has not ended'

/** The default lifecycle. */
export const standard = defineLifecycle({
  name: 'standard',
  version: 2,
  initial: 'created',
  states: {
    created: { role: 'idle', meaning: 'Accepted; waits until it is submitted.' },
    scheduled: { role: 'waiting', meaning: 'Waits for its due time.' },
    queued: { role: 'ready', meaning: 'May be claimed now.' },
    running: { role: 'held', meaning: 'An execution holds its lease.' },
    retrying: { role: 'waiting', meaning: 'Waits for its next attempt.' },
    waiting: { role: 'waiting', meaning: 'Sleeps, or waits for a signal; nothing holds it.' },
    succeeded: { role: 'succeeded', meaning: 'Its effect was committed, once.' },
    failed: { role: 'failed', meaning: 'Ended by a terminal error, or discarded.' },
    quarantined: { role: 'parked', meaning: 'Parked with a reason; waits for an operator.' },
    cancelled: { role: 'cancelled', meaning: 'Ended on request.' },
  },
  edges: [
    { from: 'created', to: 'queued', on: ['submit'] },
    { from: 'created', to: 'scheduled', on: ['schedule'] },
    { from: 'scheduled', to: 'queued', on: ['due', 'run-now'] },
    { from: 'retrying', to: 'queued', on: ['due', 'run-now'] },
    { from: 'queued', to: 'running', on: ['claim'] },
    { from: 'running', to: 'succeeded', on: ['succeed'] },
    { from: 'running', to: 'retrying', on: ['retry', 'expire'] },
    { from: 'running', to: 'failed', on: ['fail'] },
    { from: 'running', to: 'quarantined', on: ['give-up', 'reject', 'park'] },
    { from: 'running', to: 'queued', on: ['release'] },
    { from: 'quarantined', to: 'queued', on: ['redrive'], operator: true },
    { from: 'failed', to: 'queued', on: ['redrive'], operator: true },
    { from: 'quarantined', to: 'failed', on: ['discard'], operator: true },
    { from: 'created', to: 'cancelled', on: ['cancel'] },
    { from: 'scheduled', to: 'cancelled', on: ['cancel'] },
    { from: 'queued', to: 'cancelled', on: ['cancel'] },
    { from: 'running', to: 'cancelled', on: ['cancel'] },
    { from: 'retrying', to: 'cancelled', on: ['cancel'] },
    { from: 'quarantined', to: 'cancelled', on: ['cancel'] },
    { from: 'queued', to: 'scheduled', on: ['reschedule'], because: RESCHEDULE },
    { from: 'retrying', to: 'scheduled', on: ['reschedule'], because: RESCHEDULE },
    {
      from: 'running',
      to: 'scheduled',
      on: ['suspend'],
      because: 'a snoozed or throttled job occupies no slot and spends no budget',
    },
    { from: 'running', to: 'waiting', on: ['wait'], because: WAIT },
    { from: 'waiting', to: 'queued', on: ['due', 'signal'], because: WAIT },
    { from: 'waiting', to: 'cancelled', on: ['cancel'], because: WAIT },
    { from: 'waiting', to: 'quarantined', on: ['park'], operator: true, because: PARK },
    { from: 'created', to: 'quarantined', on: ['park'], operator: true, because: PARK },
    { from: 'scheduled', to: 'quarantined', on: ['park'], operator: true, because: PARK },
    { from: 'queued', to: 'quarantined', on: ['park'], operator: true, because: PARK },
    { from: 'retrying', to: 'quarantined', on: ['park'], operator: true, because: PARK },
  ],
  // Version 1 has no state for waiting.
  from: { 1: {} },
})
