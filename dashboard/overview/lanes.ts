/** All lifecycles at once: a machine of lanes, which every job is in, whatever its lifecycle. */
import type { Role } from '../../src/core/lifecycles/lifecycle.ts'
import { type MachineData, type Tone, toneOf } from '../machine-data.ts'

export const LANE_MACHINE: MachineData = {
  name: 'lanes',
  kind: 'job',
  version: 1,
  initial: 'waiting',
  states: {
    waiting: { role: 'waiting', meaning: 'Waits for its due time or its next attempt.' },
    ready: { role: 'ready', meaning: 'May be claimed now.' },
    running: { role: 'held', meaning: 'A worker holds its lease.' },
    succeeded: { role: 'succeeded', meaning: 'Ended: its effect was committed, once.' },
    blocked: { meaning: 'A limit or a throttle keeps it back.' },
    failed: { role: 'failed', meaning: 'Ended by an error.' },
    parked: { role: 'parked', meaning: 'Waits for a person.' },
    cancelled: { role: 'cancelled', meaning: 'Ended on request.' },
  },
  edges: [
    { from: 'waiting', to: 'ready', on: ['due'] },
    { from: 'ready', to: 'running', on: ['claim'] },
    { from: 'running', to: 'succeeded', on: ['succeed'] },
    { from: 'ready', to: 'blocked', on: ['block'] },
    { from: 'running', to: 'failed', on: ['fail'] },
    { from: 'running', to: 'parked', on: ['give-up'] },
    { from: 'running', to: 'waiting', on: ['retry', 'expire'] },
    { from: 'parked', to: 'ready', on: ['redrive'], operator: true },
    { from: 'failed', to: 'ready', on: ['redrive'], operator: true },
    { from: 'running', to: 'ready', on: ['release'], because: 'a worker stops' },
    { from: 'running', to: 'cancelled', on: ['cancel'] },
    { from: 'waiting', to: 'cancelled', on: ['cancel'] },
    { from: 'ready', to: 'cancelled', on: ['cancel'] },
    { from: 'parked', to: 'cancelled', on: ['cancel'] },
    { from: 'parked', to: 'failed', on: ['discard'], operator: true },
  ],
}

/** The lane of each tone; others have the name of their lane. */
const LANES: Partial<Readonly<Record<Tone, string>>> = {
  idle: 'waiting',
  scheduled: 'waiting',
  retrying: 'waiting',
}

/** The lane of a state: by its role, or by its name while its machine is not known. */
export function laneOfState(state: string, role: Role | undefined): string {
  const tone = toneOf(state, role)
  return LANES[tone] ?? tone
}
