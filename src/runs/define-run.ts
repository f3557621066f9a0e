/**
 * A run definition: a machine, and a node for each state that is not terminal. A node is the work
 * of its state and returns the next state. The compiler knows the edges of the machine.
 *
 * A node may be called again for the same state, after a crash or a rewind. So it does its work in
 * work items, which do not run twice (promise P14), and stores data in artifacts. Code between them
 * should only make decisions.
 */
import { name as checkName } from '../core/checks.ts'
import { DefinitionInvalid } from '../core/errors.ts'
import { checkDefinition, type FieldChecks, unchecked } from '../core/fields.ts'
import { documentationRun, type RunMachine, type Way } from '../core/run/machine.ts'
import type { InputOf, OutputOf, Schema } from '../engine/schema.ts'
import type { RunContext } from './node-context.ts'

/** The states to which edges lead from a state. */
type NextOf<W, S> = W extends { from: infer From; to: infer To }
  ? S extends From
    ? To
    : never
  : never

/** The states that an edge leaves: all that are not terminal. */
type FromOf<W> = W extends { from: infer From extends string } ? From : never

/** The work of a state. Returns the next state. */
export type Node<Input, Next> = (run: RunContext<Input>) => Promise<Next>

/** A node for each state that is not terminal. */
export type Nodes<Input, W> = { readonly [S in FromOf<W>]: Node<Input, NextOf<W, S>> }

/** The options of `defineRun`. */
export interface RunOptions<In extends Schema, S extends string, W extends Way> {
  /** The name of the definition; runs are stored under it. */
  readonly name: string
  /**
   * The states of the run and the edges between them.
   * @defaultValue the machine of the run requirements (R4)
   */
  readonly machine?: RunMachine<S, W>
  /**
   * The schema of the input, any Standard Schema, or `typed<T>()`.
   * @defaultValue any JSON value
   */
  readonly input?: In
  /**
   * How often the fix loop may be entered.
   * @defaultValue 3
   */
  readonly maxFixAttempts?: number
  /** The function of each state. */
  readonly nodes: Nodes<OutputOf<In>, W>
}

/** A run definition, made by `defineRun`. */
export interface RunDefinition<Input = unknown> {
  readonly name: string
  readonly machine: RunMachine
  readonly schema: Schema | undefined
  readonly maxFixAttempts: number | undefined
  readonly nodes: ReadonlyMap<string, Node<never, string>>
  /** Carries the type of the input. Never set. */
  readonly '~input'?: Input
}

const OPTIONS: FieldChecks<RunOptions<Schema, string, Way>> = {
  name: unchecked,
  machine: unchecked,
  input: unchecked,
  maxFixAttempts: unchecked,
  nodes: unchecked,
}

type DocumentationState = (typeof documentationRun)['failed']
type DocumentationWay = NonNullable<(typeof documentationRun)['~ways']>

/** Defines runs. Every state that is not terminal needs a node. */
export function defineRun<
  In extends Schema = Schema,
  S extends string = DocumentationState,
  W extends Way = DocumentationWay,
>(options: RunOptions<In, S, W>): RunDefinition<InputOf<In>> {
  checkDefinition('defineRun', options, OPTIONS)
  const { name, input, maxFixAttempts, nodes } = options
  const machine = (options.machine ?? documentationRun) as RunMachine
  const why = checkName(name)
  if (why !== undefined) throw new DefinitionInvalid('name', why)
  const what = `run "${name}"`
  for (const [state, { terminal }] of machine.machine.states) {
    const isThere = Object.hasOwn(nodes, state)
    if (isThere === (terminal === true)) {
      throw new DefinitionInvalid(what, isThere ? `${state} is terminal` : `${state} has no node`)
    }
  }
  for (const [state, node] of Object.entries<unknown>(nodes)) {
    if (!machine.machine.states.has(state)) {
      throw new DefinitionInvalid(what, `its machine has no state ${state}`)
    }
    if (typeof node !== 'function')
      throw new DefinitionInvalid(what, `the node of ${state} is not a function`)
  }
  return Object.freeze({
    name,
    machine,
    schema: input,
    maxFixAttempts,
    nodes: new Map(Object.entries(nodes)) as ReadonlyMap<string, Node<never, string>>,
  })
}
