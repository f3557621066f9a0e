/**
 * Machines are data: declared states, triggers and edges. Validation, types, the exhaustive tests
 * and the diagrams in the docs all come from this one table.
 *
 * An edge without `because` comes from the requirements of the machine. An edge with `because` was
 * added, and says why. Only a named operator may take an edge with `operator`. Only such edges may
 * leave a terminal state.
 */
import { flag, listOf, oneOf, record } from '../checks.ts'
import { MachineUnsound } from '../errors.ts'
import { checkDefinition, type FieldChecks, unchecked } from '../fields.ts'
import { findProblems } from './soundness.ts'

/** What a machine does if it is asked to move to its current state. */
export type SameState = 'noop' | 'refuse'

export interface StateSpec {
  /** What the state means, in one sentence. */
  readonly meaning: string
  /** Only operator edges lead out of a terminal state. */
  readonly terminal?: boolean
  /** Runs: a run can be resumed from this state. */
  readonly stable?: boolean
  /** Runs: a resumed run must not continue in this state. */
  readonly transitional?: boolean
}

export interface EdgeSpec<S extends string = string, T extends string = string> {
  readonly from: S
  readonly to: S
  /** The triggers that take this edge. */
  readonly on: readonly T[]
  readonly operator?: boolean
  /** Why the edge was added to those of the requirements. */
  readonly because?: string
}

export interface MachineSpec<S extends string = string, T extends string = string> {
  readonly name: string
  /** Increases by one when states or edges change. */
  readonly version: number
  readonly initial: NoInfer<S>
  readonly sameState: SameState
  readonly states: Readonly<Record<S, StateSpec>>
  readonly edges: readonly EdgeSpec<NoInfer<S>, T>[]
}

/** A sound machine with indexes for moves. */
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

const MACHINE: FieldChecks<MachineSpec> = {
  // Soundness checks these two.
  name: unchecked,
  version: unchecked,
  initial: unchecked,
  sameState: (value) => oneOf(value, ['noop', 'refuse']),
  states: record,
  edges: (values: readonly object[]) => listOf(values, Number.POSITIVE_INFINITY, record),
}

const STATE: FieldChecks<StateSpec> = {
  meaning: (value) => (typeof value === 'string' ? undefined : 'must be a string'),
  terminal: flag,
  stable: flag,
  transitional: flag,
}

const EDGE: FieldChecks<EdgeSpec> = {
  from: unchecked,
  to: unchecked,
  on: (values: readonly string[]) => listOf(values, Number.POSITIVE_INFINITY, () => undefined),
  operator: flag,
  because: (value) => (typeof value === 'string' ? undefined : 'must be a string'),
}

/** Throws `DefinitionInvalid` for unknown fields and values of another type. */
function checkSpec(spec: MachineSpec): void {
  checkDefinition('machine', spec, MACHINE)
  for (const [name, state] of Object.entries(spec.states)) {
    checkDefinition(`state ${name}`, state, STATE)
  }
  for (const edge of spec.edges) checkDefinition(`edge ${edge.from} → ${edge.to}`, edge, EDGE)
}

/**
 * Builds a machine. Throws `DefinitionInvalid` for unknown fields, and `MachineUnsound` with all
 * problems of the definition.
 */
export function defineMachine<const S extends string, const T extends string>(
  spec: MachineSpec<S, T>,
): Machine<S, T> {
  checkSpec(spec)
  const problems = findProblems(spec)
  if (problems.length > 0) throw new MachineUnsound(spec.name, problems)

  // Copied and frozen: a later change of `spec` must not change the indexed edges.
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
