/**
 * What a kind of run is: a machine, and for each state that is not terminal a node, which is the
 * work done in that state. A node returns the state to go to next; the compiler knows which edges
 * there are.
 *
 * A node may be called again for the same state, after a crash or a rewind, so it keeps what it has
 * done in work items, which are not done twice (promise P14), and in artifacts. Between them it
 * should only decide.
 */
import { name as checkName } from '../core/checks.ts'
import { DefinitionInvalid } from '../core/errors.ts'
import { checkDefinition, type FieldChecks, unchecked } from '../core/fields.ts'
import { documentationRun, type RunMachine, type Way } from '../core/run/machine.ts'
import type { InputOf, OutputOf, Schema } from '../engine/schema.ts'
import type { RunContext } from './run-context.ts'

/** The states to which edges lead from a state. */
type NextOf<W, S> = W extends { from: infer From; to: infer To }
  ? S extends From
    ? To
    : never
  : never

/** The states that an edge leaves: all that are not terminal. */
type FromOf<W> = W extends { from: infer From extends string } ? From : never

/** The work done in a state; it gives the next one. */
export type Node<Input, Next> = (run: RunContext<Input>) => Promise<Next>

/** A node for each state that is not terminal. */
export type Nodes<Input, W> = { readonly [S in FromOf<W>]: Node<Input, NextOf<W, S>> }

/** What `defineRun` takes. */
export interface RunOptions<In extends Schema, S extends string, W extends Way> {
  readonly name: string
  /** If absent, the machine of the run requirements (R4). */
  readonly machine?: RunMachine<S, W>
  readonly input?: In
  /** How often the fix loop may be entered; 3 if absent. */
  readonly maxFixAttempts?: number
  readonly nodes: Nodes<OutputOf<In>, W>
}

/** A kind of run. */
export interface RunDefinition<Input = unknown> {
  readonly name: string
  readonly machine: RunMachine
  readonly schema: Schema | undefined
  readonly maxFixAttempts: number | undefined
  readonly nodes: ReadonlyMap<string, Node<never, string>>
  /** Carries the type of the input; never there. */
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

/** Defines a kind of run; every state that is not terminal needs a node. */
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
    if (typeof node !== 'function') throw new DefinitionInvalid(what, `${state} is no function`)
  }
  return Object.freeze({
    name,
    machine,
    schema: input,
    maxFixAttempts,
    nodes: new Map(Object.entries(nodes)) as ReadonlyMap<string, Node<never, string>>,
  })
}
