/**
 * The run machine of the run requirements (R4), with exactly its table. "Any state" in R4 means any
 * state that is not terminal.
 *
 * A run machine adds what resuming and failing need: the states for failed and cancelled runs, and
 * the fix loop. The guards of the fix loop use the folded state:
 *
 *   VALIDATING → READY_FOR_PR   the last validation was ok
 *   VALIDATING → FIXING         the last validation was not ok, and fix attempts are left;
 *                               if none are left, the run fails instead
 *
 * A rewind on resume is not an edge: it is a fact of its own kind (rule G8), see `decide.ts`.
 */
import { record } from '../checks.ts'
import { DefinitionInvalid } from '../errors.ts'
import { checkDefinition, type FieldChecks, unchecked } from '../fields.ts'
import { defineMachine, type EdgeSpec, type Machine, type MachineSpec } from '../machine/define.ts'
import { move } from '../machine/move.ts'

/** The states of a loop that validates, fixes and validates again, a bounded number of times. */
export interface FixLoop<S extends string = string> {
  readonly validating: S
  readonly fixing: S
  readonly passed: S
}

/** An edge from one state to another, as the compiler knows it. */
export type Way<S extends string = string> = Pick<EdgeSpec<S>, 'from' | 'to'>

/** A machine for runs. */
export interface RunMachine<S extends string = string, W extends Way = Way> {
  readonly machine: Machine<S>
  readonly failed: S
  readonly cancelled: S
  readonly fixLoop?: FixLoop<S>
  /** Carries the types of the edges. Never set. */
  readonly '~ways'?: W
}

/** A run machine with its definition, from which the compiler reads the edges. */
export interface RunMachineSpec<S extends string, T extends string, W extends Way<S>>
  extends Omit<RunMachine<NoInfer<S>>, 'machine' | '~ways'> {
  readonly machine: MachineSpec<S, T> & { readonly edges: readonly W[] }
}

const RUN_MACHINE: FieldChecks<RunMachine> = {
  machine: record,
  // Compared with the states of the machine.
  failed: unchecked,
  cancelled: unchecked,
  fixLoop: record,
  '~ways': unchecked,
}

/** Builds a run machine. Throws if a run could not fail or be cancelled from a state. */
export function defineRunMachine<
  const S extends string,
  const T extends string,
  const W extends Way<NoInfer<S>>,
>(spec: RunMachineSpec<S, T, W>): RunMachine<S, W>
/** For a machine that is already defined. The compiler does not know its edges. */
export function defineRunMachine<S extends string>(spec: RunMachine<S>): RunMachine<S>
/** Builds a run machine. Throws if a run could not fail or be cancelled from a state. */
export function defineRunMachine<S extends string>(
  spec: RunMachine<S> | RunMachineSpec<S, string, Way<S>>,
): RunMachine<S> {
  checkDefinition('run machine', spec as RunMachine, RUN_MACHINE)
  const { machine: given, failed, cancelled, fixLoop } = spec
  const machine = 'byTarget' in given ? given : defineMachine<S, string>(given)
  const what = `run machine "${machine.name}"`
  if (machine.sameState !== 'refuse') {
    throw new DefinitionInvalid(
      what,
      'sameState must be "refuse": a run never moves to its current state',
    )
  }
  for (const [state, { terminal }] of machine.states) {
    for (const end of [failed, cancelled]) {
      if (!terminal && move(machine, state, { to: end }).kind !== 'edge') {
        throw new DefinitionInvalid(what, `there is no edge from ${state} to ${end}`)
      }
    }
  }
  for (const state of fixLoop === undefined ? [] : Object.values(fixLoop)) {
    if (!machine.states.has(state)) throw new DefinitionInvalid(what, `it has no state ${state}`)
  }
  return Object.freeze({ ...spec, machine })
}

const ANY_STATE = [
  'CREATED',
  'CLONED_INPUTS',
  'INGESTED',
  'FACTS_READY',
  'PLAN_READY',
  'DRAFTING',
  'DRAFT_READY',
  'LINKING',
  'VALIDATING',
  'FIXING',
  'READY_FOR_PR',
  'PR_OPENED',
] as const

const endings = ANY_STATE.flatMap(
  (from) =>
    [
      { from, to: 'FAILED', on: ['fail'] },
      { from, to: 'CANCELLED', on: ['cancel'] },
    ] as const,
)

/** The run machine of the run requirements (R4). */
export const documentationRun = defineRunMachine({
  machine: {
    name: 'run',
    version: 1,
    initial: 'CREATED',
    sameState: 'refuse',
    states: {
      CREATED: { meaning: 'The run exists.' },
      CLONED_INPUTS: { meaning: 'Its inputs are copied.' },
      INGESTED: { meaning: 'The inputs are read.' },
      FACTS_READY: { meaning: 'Facts are extracted from them.' },
      PLAN_READY: { meaning: 'The plan is complete.', stable: true },
      DRAFTING: { meaning: 'Sections are being drafted.', transitional: true },
      DRAFT_READY: { meaning: 'All sections are drafted.', stable: true },
      LINKING: { meaning: 'Sections are being linked.', transitional: true },
      VALIDATING: { meaning: 'The result is being checked.', transitional: true },
      FIXING: { meaning: 'The problems that the check found are being fixed.', transitional: true },
      READY_FOR_PR: { meaning: 'The check passed.', stable: true },
      PR_OPENED: { meaning: 'The pull request is open.' },
      DONE: { meaning: 'The run is complete.', terminal: true },
      FAILED: { meaning: 'The run ended by an unrecoverable error.', terminal: true },
      CANCELLED: { meaning: 'The run was cancelled by its user.', terminal: true },
    },
    edges: [
      { from: 'CREATED', to: 'CLONED_INPUTS', on: ['clone'] },
      { from: 'CLONED_INPUTS', to: 'INGESTED', on: ['ingest'] },
      { from: 'INGESTED', to: 'FACTS_READY', on: ['extract'] },
      { from: 'FACTS_READY', to: 'PLAN_READY', on: ['plan'] },
      { from: 'PLAN_READY', to: 'DRAFTING', on: ['draft'] },
      { from: 'DRAFTING', to: 'DRAFT_READY', on: ['drafted'] },
      { from: 'DRAFT_READY', to: 'LINKING', on: ['link'] },
      { from: 'LINKING', to: 'VALIDATING', on: ['validate'] },
      { from: 'VALIDATING', to: 'READY_FOR_PR', on: ['pass'] },
      { from: 'VALIDATING', to: 'FIXING', on: ['fix'] },
      { from: 'FIXING', to: 'VALIDATING', on: ['validate'] },
      { from: 'READY_FOR_PR', to: 'PR_OPENED', on: ['open-pr'] },
      { from: 'PR_OPENED', to: 'DONE', on: ['finish'] },
      ...endings,
    ],
  },
  failed: 'FAILED',
  cancelled: 'CANCELLED',
  fixLoop: { validating: 'VALIDATING', fixing: 'FIXING', passed: 'READY_FOR_PR' },
})
