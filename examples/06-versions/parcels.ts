/** Two versions of one lifecycle: version 2 has a state more, and other names for two states. */
import { defineLifecycle, type JobTrigger } from 'pawl/rules'

const outcomes: readonly JobTrigger[] = ['fail', 'give-up', 'reject', 'cancel']

export const parcel1 = defineLifecycle({
  name: 'parcel',
  version: 1,
  initial: 'packed',
  states: {
    packed: { role: 'ready', meaning: 'Waits for a courier.' },
    underway: { role: 'held', meaning: 'Is carried.' },
    delivered: { role: 'succeeded', meaning: 'Has arrived.' },
    lost: { role: 'failed', meaning: 'Does not arrive.' },
  },
  edges: [
    { from: 'packed', to: 'underway', on: ['claim'] },
    { from: 'packed', to: 'lost', on: ['cancel'] },
    { from: 'underway', to: 'delivered', on: ['succeed'] },
    { from: 'underway', to: 'packed', on: ['release', 'retry', 'expire'] },
    { from: 'underway', to: 'lost', on: outcomes },
  ],
})

export const parcel2 = defineLifecycle({
  name: 'parcel',
  version: 2,
  initial: 'waiting',
  states: {
    waiting: { role: 'ready', meaning: 'Waits for a courier.' },
    carried: { role: 'held', meaning: 'Is carried.' },
    missed: { role: 'waiting', meaning: 'Nobody was at home: it is carried again later.' },
    delivered: { role: 'succeeded', meaning: 'Has arrived.' },
    lost: { role: 'failed', meaning: 'Does not arrive.' },
  },
  edges: [
    { from: 'waiting', to: 'carried', on: ['claim'] },
    { from: 'waiting', to: 'lost', on: ['cancel'] },
    { from: 'carried', to: 'delivered', on: ['succeed'] },
    { from: 'carried', to: 'missed', on: ['retry', 'expire'] },
    { from: 'carried', to: 'waiting', on: ['release'] },
    { from: 'missed', to: 'waiting', on: ['due', 'run-now'] },
    { from: 'missed', to: 'lost', on: ['cancel'] },
    { from: 'carried', to: 'lost', on: outcomes },
  ],
  from: { 1: { packed: 'waiting', underway: 'carried' } },
})
