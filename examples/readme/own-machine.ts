import { defineMachine, move, toMermaid } from 'pawl/rules'

const door = defineMachine({
  name: 'door',
  version: 1,
  initial: 'closed',
  sameState: 'noop',
  states: {
    open: { meaning: 'Anybody can pass.' },
    closed: { meaning: 'Nobody can pass.' },
    removed: { meaning: 'There is no door.', terminal: true },
  },
  edges: [
    { from: 'closed', to: 'open', on: ['push'] },
    { from: 'open', to: 'closed', on: ['pull'] },
    { from: 'open', to: 'removed', on: ['unhinge'] },
  ],
})

move(door, 'closed', { on: 'push' }) // { kind: 'edge', edge: … }
move(door, 'closed', { to: 'removed' }) // { kind: 'invalid', error: InvalidTransition }
toMermaid(door) // the picture
