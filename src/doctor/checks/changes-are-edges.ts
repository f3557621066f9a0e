import { violationsOf } from './violations.ts'

/** States and executions move along their edges; what is forced or repaired is signed. */
export const changesAreEdges = violationsOf({
  name: 'changes-are-edges',
  promise: 'P2',
  says: 'Every change of a job is an edge of its lifecycle, or forced or repaired by name.',
})
