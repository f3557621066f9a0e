/** Questions about a machine as a graph. */
import type { EdgeSpec, Machine } from './define.ts'

/** The states that edges lead to from here, this state included. */
export function reachableFrom<S extends string>(
  edges: readonly EdgeSpec<S>[],
  start: NoInfer<S>,
): Set<S> {
  const reached = new Set<S>([start])
  // A Set iterates over what is added during the loop, so this ends when nothing new is found.
  for (const state of reached) {
    for (const edge of edges) if (edge.from === state) reached.add(edge.to)
  }
  return reached
}

/** What `analyse` tells of a machine. */
export interface Analysis<S extends string = string> {
  readonly terminal: readonly S[]
  readonly stable: readonly S[]
  readonly transitional: readonly S[]
  /** For each state, every state that can still come after it. */
  readonly reachable: ReadonlyMap<S, readonly S[]>
  /** States from which no terminal state can be reached any more. */
  readonly endless: readonly S[]
  /** True when no state has two targets for one trigger; always so for a defined machine. */
  readonly deterministic: boolean
}

/** Terminal, stable and transitional sets, and what can be reached from where. */
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
