/**
 * Machines are data: declared states, triggers and edges. From this one table come validation,
 * types, the exhaustive tests and the pictures in the docs.
 *
 * An edge without `because` is one that the machine's source document has; an edge with `because`
 * was added by us, and says why. `operator` marks an edge that only a named person may take, the
 * one kind of edge that may leave a terminal state.
 */
import { MachineUnsound } from '../errors.ts'
import { findProblems } from './soundness.ts'

/** What a machine does when it is asked to move to the state that it is in. */
export type SameState = 'noop' | 'refuse'

/** One declared state. */
export interface StateSpec {
  /** What it means to be in this state, in one sentence. */
  readonly meaning: string
  /** Nothing but operator edges leads out of a terminal state. */
  readonly terminal?: boolean
  /** Runs: a state in which work may be picked up again. */
  readonly stable?: boolean
  /** Runs: a state that a resumed run must not continue in. */
  readonly transitional?: boolean
}

/** One declared edge. */
export interface EdgeSpec<S extends string = string, T extends string = string> {
  readonly from: S
  readonly to: S
  /** The triggers that take this edge. */
  readonly on: readonly T[]
  readonly operator?: boolean
  /** Why the edge was added to those of the document. */
  readonly because?: string
}

/** What `defineMachine` takes. */
export interface MachineSpec<S extends string = string, T extends string = string> {
  readonly name: string
  /** Rises by one whenever states or edges change. */
  readonly version: number
  readonly initial: NoInfer<S>
  readonly sameState: SameState
  readonly states: Readonly<Record<S, StateSpec>>
  readonly edges: readonly EdgeSpec<NoInfer<S>, T>[]
}

/** A sound machine, indexed for moves. */
export interface Machine<S extends string = string, T extends string = string> {
  readonly name: string
  readonly version: number
  readonly initial: S
  readonly sameState: SameState
  readonly states: ReadonlyMap<S, StateSpec>
  readonly edges: readonly EdgeSpec<S, T>[]
  readonly byTarget: ReadonlyMap<S, ReadonlyMap<S, EdgeSpec<S, T>>>
  readonly byTrigger: ReadonlyMap<S, ReadonlyMap<T, EdgeSpec<S, T>>>
}

/** Builds a machine, or refuses with every problem of its definition. */
export function defineMachine<const S extends string, const T extends string>(
  spec: MachineSpec<S, T>,
): Machine<S, T> {
  const problems = findProblems(spec)
  if (problems.length > 0) throw new MachineUnsound(spec.name, problems)

  // Copies, so that nobody can change the table behind its index.
  const edges = spec.edges.map((edge) =>
    Object.freeze({ ...edge, on: Object.freeze([...edge.on]) }),
  )
  const states = new Map(Object.entries<StateSpec>(spec.states)) as Map<S, StateSpec>
  const byTarget = new Map<S, Map<S, EdgeSpec<S, T>>>()
  const byTrigger = new Map<S, Map<T, EdgeSpec<S, T>>>()
  for (const state of states.keys()) {
    const out = edges.filter((edge) => edge.from === state)
    byTarget.set(state, new Map(out.map((edge) => [edge.to, edge])))
    byTrigger.set(
      state,
      new Map(out.flatMap((edge) => edge.on.map((trigger) => [trigger, edge] as const))),
    )
  }
  return Object.freeze({
    name: spec.name,
    version: spec.version,
    initial: spec.initial,
    sameState: spec.sameState,
    states,
    edges: Object.freeze(edges),
    byTarget,
    byTrigger,
  })
}
