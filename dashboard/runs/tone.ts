/** The sign of the state of a run. Pure. */
import { type MachineData, type Tone, toneOf } from '../machine-data.ts'
import { pictureOf } from './walk.ts'

/** By its machine; by its name alone if that is not known. */
export function runTone(state: string, machine: MachineData | undefined): Tone {
  const states = machine === undefined ? {} : pictureOf(machine).states
  if (Object.hasOwn(states, state)) return toneOf(state, states[state]?.role)
  const named = toneOf(state)
  return named === 'idle' ? 'running' : named
}
