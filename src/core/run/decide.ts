/**
 * `decideRun` holds the rules of runs: the transitions, guards, rewinds, artifacts, work items and
 * issues of the run requirements (R4). It writes nothing, like the decider of jobs. Unlike it, one
 * command may return several facts, in the order in which they must be appended.
 *
 * A refused transition carries the event that telemetry must receive (INVALID_STATE_TRANSITION).
 */
import {
  CommandInvalid,
  GuardRefused,
  InvalidTransition,
  LifecycleUnknown,
  type PawlError,
  RewindRefused,
  RunEnded,
  RunExists,
  RunNotFound,
} from '../errors.ts'
import { move } from '../machine/move.ts'
import { findRunFault } from './checks.ts'
import type { RunCommand } from './commands.ts'
import { decideContent } from './decide-content.ts'
import type { RunFact } from './events.ts'
import type { RunMachine } from './machine.ts'
import type { Run } from './run.ts'

/** `max_fix_attempts` of R4, if the run was created without one. */
const FIX_ATTEMPTS_DEFAULT = 3

/** A commit may be linked to an ended run, and the discarded tail of its log must be recorded. */
const AFTER_END: readonly RunCommand['kind'][] = ['link-commit', 'discard-tail']

/** The telemetry event of a refused transition. */
export interface RefusedTransition {
  readonly type: 'INVALID_STATE_TRANSITION'
  readonly data: { readonly from_state: string; readonly to_state: string }
}

/** The result of a command: facts, a no-op, or a rejection. */
export type RunDecision =
  | { readonly kind: 'facts'; readonly facts: readonly RunFact[] }
  | { readonly kind: 'same' }
  | {
      readonly kind: 'rejected'
      readonly error: PawlError
      readonly telemetry?: RefusedTransition
    }

/** Decides one command for one run. `run` is null if it does not exist yet. */
export function decideRun(
  runMachine: RunMachine,
  run: Run | null,
  command: RunCommand,
): RunDecision {
  const fault = findRunFault(command)
  if (fault !== undefined) return refuse(fault)
  if (command.kind === 'create') {
    return run === null ? decideCreate(runMachine, command) : refuse(new RunExists(run.run_id))
  }
  if (run === null) return refuse(new RunNotFound())
  const { name, version } = runMachine.machine
  if (run.machine.name !== name || run.machine.version !== version) {
    return refuse(new LifecycleUnknown(run.machine.name, run.machine.version))
  }
  if (isEnded(runMachine, run) && !AFTER_END.includes(command.kind)) {
    // Telemetry also receives a refused move out of a terminal state.
    return command.kind === 'move'
      ? refuseTransition(runMachine, run, command.to)
      : refuse(new RunEnded(run.run_id, run.run_state))
  }
  const decision = decideActive(runMachine, run, command)
  return countsFix(run, command) ? withFix(run, command, decision) : decision
}

/** Decides a command for a run that has not ended, or a command that is allowed after the end. */
function decideActive(
  runMachine: RunMachine,
  run: Run,
  command: Exclude<RunCommand, { kind: 'create' }>,
): RunDecision {
  switch (command.kind) {
    case 'move':
      return decideMove(runMachine, run, command.to)
    case 'rewind':
      return decideRewind(runMachine, run, command)
    case 'record-validation':
      return decideValidation(runMachine, run, command.ok)
    case 'count-fix':
      return { kind: 'same' }
    case 'reset-fixes':
      return decideReset(run, command.because)
    case 'fail':
      return end(run, runMachine.failed, { type: 'RUN_FAILED', data: { reason: command.reason } })
    case 'cancel':
      return end(run, runMachine.cancelled, {
        type: 'RUN_CANCELLED',
        data: { reason: command.reason },
      })
    default:
      return decideContent(run, command)
  }
}

function decideCreate(
  { machine }: RunMachine,
  command: Extract<RunCommand, { kind: 'create' }>,
): RunDecision {
  return accept({
    type: 'RUN_CREATED',
    data: {
      state: machine.initial,
      machine: machine.name,
      machine_version: machine.version,
      max_fix_attempts: command.maxFixAttempts ?? FIX_ATTEMPTS_DEFAULT,
      ...(machine.states.get(machine.initial)?.stable === true && { stable: true }),
    },
  })
}

function decideMove(runMachine: RunMachine, run: Run, to: string): RunDecision {
  const { machine, fixLoop } = runMachine
  const from = run.run_state
  if (move(machine, from, { to }).kind !== 'edge') return refuseTransition(runMachine, run, to)
  if (to === runMachine.failed) return decideRun(runMachine, run, { kind: 'fail', reason: from })
  if (to === runMachine.cancelled) {
    return decideRun(runMachine, run, { kind: 'cancel', reason: from })
  }
  const guard = to === fixLoop?.passed || to === fixLoop?.fixing ? to === fixLoop.passed : undefined
  if (guard !== undefined && run.validation?.ok !== guard) {
    const found =
      run.validation === null
        ? 'no validation was recorded'
        : 'the last validation had the other result'
    return refuse(new GuardRefused(from, to, found))
  }
  const fixing = to === fixLoop?.fixing
  if (fixing && run.fix_attempts >= run.max_fix_attempts) {
    const reason = 'max_fix_attempts exceeded'
    return end(run, runMachine.failed, { type: 'RUN_FAILED', data: { reason } })
  }
  return accept({
    type: 'RUN_STATE_CHANGED',
    data: {
      from_state: from,
      to_state: to,
      ...(machine.states.get(to)?.stable === true && { stable: true }),
      ...(fixing && { fix_pending: true }),
      ...(to === fixLoop?.validating && { validating: true }),
    },
  })
}

/**
 * Rewinds to a stable state that the run has visited. A rewind is not an edge, and happens only on
 * resume. If a stale input was read before the first stable state, the run goes back to its initial
 * state.
 */
function decideRewind(
  { machine }: RunMachine,
  run: Run,
  command: Extract<RunCommand, { kind: 'rewind' }>,
): RunDecision {
  const from = run.run_state
  const last = run.stable_trail[run.stable_trail.length - 1]
  if (command.reason === 'resume' && machine.states.get(from)?.transitional !== true) {
    return refuse(new RewindRefused(run.run_id, `${from} is not transitional`))
  }
  const to = command.reason === 'resume' ? last : command.to
  const isStable = to !== undefined && run.stable_trail.includes(to)
  const isInitial = command.reason === 'stale' && to === machine.initial && !isStable
  if (to === undefined || !(isStable || isInitial)) {
    const why = to === undefined ? 'no stable state was visited' : `${to} was not visited`
    return refuse(new RewindRefused(run.run_id, why))
  }
  if (to === from) return { kind: 'same' }
  const data = {
    from_state: from,
    to_state: to,
    reason: command.reason,
    ...(isInitial && { initial: true as const }),
    ...(keepsValidation(run, to) && { keeps_validation: true as const }),
  }
  return accept({ type: 'RESUME_REWIND', data })
}

/** Returns true if the state was entered after the last validation, which then remains valid. */
function keepsValidation({ validation, stable_trail }: Run, to: string): boolean {
  const length = validation?.trail_length
  return length !== undefined && stable_trail.lastIndexOf(to) >= length
}

/**
 * The commands that show that the work of a fix ran. The first of them counts the fix attempt, so
 * that a process that dies before its first result spends no attempt. See
 * docs/decisions/0019-a-fix-attempt-counts-when-its-work-ran.md.
 */
const FIX_WORK: readonly RunCommand['kind'][] = [
  'count-fix',
  'move',
  'write-artifact',
  'finish-item',
  'fail-item',
]

function countsFix({ fix_pending }: Run, { kind }: RunCommand): boolean {
  return fix_pending === true && FIX_WORK.includes(kind)
}

/** The count comes first: if only this event reaches the disk, the work that it counts did run. */
function withFix({ fix_attempts }: Run, { kind }: RunCommand, decision: RunDecision): RunDecision {
  if (decision.kind === 'rejected') return decision
  // An item that had already ended is reported again. That does not show work of this attempt.
  if (decision.kind === 'same' && kind !== 'count-fix') return decision
  const counted: RunFact = { type: 'FIX_ATTEMPTED', data: { attempt: fix_attempts + 1 } }
  return accept(counted, ...(decision.kind === 'facts' ? decision.facts : []))
}

function decideReset({ fix_attempts: spent }: Run, because: string): RunDecision {
  if (spent === 0) return { kind: 'same' }
  return accept({ type: 'FIX_ATTEMPTS_RESET', data: { spent, because } })
}

function decideValidation({ fixLoop }: RunMachine, run: Run, ok: boolean): RunDecision {
  if (run.run_state !== fixLoop?.validating) {
    const why = `is recorded only in ${fixLoop?.validating ?? 'a machine with a fix loop'}`
    return refuse(new CommandInvalid('validation', why))
  }
  const trail_length = run.stable_trail.length
  return accept({ type: 'VALIDATION_RECORDED', data: { ok, trail_length } })
}

/** The change of state comes first: if only this event reaches the disk, the state is correct. */
function end(run: Run, to: string, because: RunFact): RunDecision {
  const data = { from_state: run.run_state, to_state: to }
  return accept({ type: 'RUN_STATE_CHANGED', data }, because)
}

function isEnded({ machine }: RunMachine, run: Run): boolean {
  return machine.states.get(run.run_state)?.terminal === true
}

function refuseTransition({ machine }: RunMachine, run: Run, to: string): RunDecision {
  const allowed = [...(machine.byTarget.get(run.run_state)?.keys() ?? [])]
  return {
    kind: 'rejected',
    error: new InvalidTransition(machine.name, run.run_state, to, allowed),
    telemetry: {
      type: 'INVALID_STATE_TRANSITION',
      data: { from_state: run.run_state, to_state: to },
    },
  }
}

function accept(...facts: readonly RunFact[]): RunDecision {
  return { kind: 'facts', facts }
}

function refuse(error: PawlError): RunDecision {
  return { kind: 'rejected', error }
}
