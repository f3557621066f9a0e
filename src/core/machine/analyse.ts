/** Properties of a machine as a graph. */
import type { EdgeSpec, Machine } from './define.ts'

/** Returns the states that can be reached from `start`, including `start`. */
export function reachableFrom<S extends string>(
  edges: readonly EdgeSpec<S>[],
  start: NoInfer<S>,
): Set<S> {
  const reached = new Set<S>([start])
  // A Set also iterates over states that are added during the loop.
  for (const state of reached) {
    for (const edge of edges) if (edge.from === state) reached.add(edge.to)
  }
  return reached
}

export interface Analysis<S extends string = string> {
  readonly terminal: readonly S[]
  readonly stable: readonly S[]
  readonly transitional: readonly S[]
  /** For each state, all other states that can be reached from it. */
  readonly reachable: ReadonlyMap<S, readonly S[]>
  /** States from which no terminal state can be reached. */
  readonly endless: readonly S[]
  /** True if no state has two targets for one trigger. Always true for a defined machine. */
  readonly deterministic: boolean
}

/** Returns the terminal, stable and transitional states, and what each state can reach. */
export function analyse<S extends string>(machine: Machine<S>): Analysis<S> {
  const states = [...machine.states]
  const where = (flag: 'terminal' | 'stable' | 'transitional') =>
    states.filter(([, spec]) => spec[flag] === true).map(([state]) => state)
  const terminal = where('terminal')
  const after = states.map(([state]) => [state, reachableFrom(machine.edges, state)] as const)
  const pairs = machine.edges.flatMap((edge) => edge.on.map((on) => `${edge.from} ${on}`))
  return {
    terminal,
    stable: where('stable'),
    transitional: where('transitional'),
    reachable: new Map(
      after.map(([state, reached]) => [state, [...reached].filter((other) => other !== state)]),
    ),
    endless: after
      .filter(([, reached]) => !terminal.some((end) => reached.has(end)))
      .map(([state]) => state),
    deterministic: new Set(pairs).size === pairs.length,
  }
}
