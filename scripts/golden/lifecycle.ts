/** A lifecycle of a user's own, which every golden store contains beside those that ship. */
import { defineLifecycle } from 'pawl/rules'

/** A parcel: packed, carried, delivered or lost. */
export const parcel = defineLifecycle({
  name: 'golden-parcel',
  version: 1,
  initial: 'packed',
  states: {
    packed: { role: 'ready', meaning: 'Waits for a carrier.' },
    carried: { role: 'held', meaning: 'A carrier has it.' },
    delivered: { role: 'succeeded', meaning: 'It arrived.' },
    lost: { role: 'failed', meaning: 'It did not arrive.' },
    returned: { role: 'cancelled', meaning: 'The sender took it back.' },
  },
  edges: [
    { from: 'packed', to: 'carried', on: ['claim'] },
    { from: 'carried', to: 'packed', on: ['retry', 'expire', 'release'] },
    { from: 'carried', to: 'delivered', on: ['succeed'] },
    { from: 'carried', to: 'lost', on: ['fail', 'give-up', 'reject'] },
    { from: 'packed', to: 'returned', on: ['cancel'] },
    { from: 'carried', to: 'returned', on: ['cancel'] },
  ],
})
