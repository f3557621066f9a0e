/**
 * The default lifecycle: what the five documents have in common, with a state of its own for each
 * thing that a job can be waiting for. Failed and quarantined jobs can be redriven by an operator;
 * succeeded and cancelled ones never change.
 */
import { defineLifecycle } from './lifecycle.ts'

const RESCHEDULE = 'an operator or client may move a due time'
const PARK = 'an operator may take any job that has not ended out of the flow'

/** The default lifecycle. */
export const standard = defineLifecycle({
  name: 'standard',
  version: 1,
  initial: 'created',
  states: {
    created: { role: 'idle', meaning: 'Accepted, and held back until it is submitted.' },
    scheduled: { role: 'waiting', meaning: 'Waits for its due time.' },
    queued: { role: 'ready', meaning: 'May be claimed now.' },
    running: { role: 'held', meaning: 'An execution holds its lease.' },
    retrying: { role: 'waiting', meaning: 'Waits out the delay before the next attempt.' },
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
      because: 'a job that sleeps or waits for a signal holds no slot and spends no budget',
    },
    { from: 'created', to: 'quarantined', on: ['park'], operator: true, because: PARK },
    { from: 'scheduled', to: 'quarantined', on: ['park'], operator: true, because: PARK },
    { from: 'queued', to: 'quarantined', on: ['park'], operator: true, because: PARK },
    { from: 'retrying', to: 'quarantined', on: ['park'], operator: true, because: PARK },
  ],
})
