/** Which edges of a machine are drawn only if they were taken. */
import type { MachineData, MachineEdge } from '../machine-data.ts'

/**
 * Edges that exist in almost every state and say little: drawn if they were taken. An edge that a
 * requirement does not have is one of them, unless it is the only way to or from a state.
 */
export function isSideEdge(machine: MachineData, edge: MachineEdge): boolean {
  if (isOfPeople(machine, edge)) return true
  const isMain = (one: MachineEdge) => one.because === undefined && !isOfPeople(machine, one)
  if (isMain(edge)) return false
  const main = machine.edges.filter(isMain)
  const isReached = (state: string) => main.some(({ to }) => to === state)
  return isReached(edge.to) && isReached(edge.from)
}

function isOfPeople(machine: MachineData, { to, operator }: MachineEdge): boolean {
  return operator === true || machine.states[to]?.role === 'cancelled'
}
