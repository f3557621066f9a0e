/**
 * The commands of operators on jobs as data: the command line and the HTTP API are built from this
 * table. Each command takes a selection, and some take one argument more.
 */
import type { Priority } from '../../core/job/priority.ts'
import type { Operator, OperatorOptions } from './operators.ts'
import type { OperatorReport } from './report.ts'
import type { Selection } from './selection.ts'

/** The further arguments of commands. */
export interface VerbArguments {
  /** The new state, for `force`. */
  readonly state?: string
  /** The new due time, for `reschedule`; the past means now. */
  readonly runAt?: number
  /** The new priority, for `prioritise`. */
  readonly priority?: Priority
}

export interface OperatorVerb {
  readonly name: string
  readonly summary: string
  readonly details?: string
  /** The argument that the command needs. */
  readonly takes?: keyof VerbArguments
  readonly act: (
    operator: Operator,
    selection: Selection,
    options: OperatorOptions,
    args: VerbArguments,
  ) => Promise<OperatorReport>
}

export const OPERATOR_VERBS: readonly OperatorVerb[] = [
  {
    name: 'submit',
    summary: 'Make jobs ready that were enqueued with a hold',
    act: (operator, selection, options) => operator.submit(selection, options),
  },
  {
    name: 'retry',
    summary: 'Run jobs again, in the way that their lifecycle allows',
    details:
      'A waiting job becomes due now. A parked or failed job is redriven with fresh budgets. If ' +
      'the lifecycle does not allow that, one copy is enqueued.',
    act: (operator, selection, options) => operator.retry(selection, options),
  },
  {
    name: 'copy',
    summary: 'Enqueue copies of ended jobs, a new one with each call',
    act: (operator, selection, options) => operator.copy(selection, options),
  },
  {
    name: 'cancel',
    summary: 'Cancel jobs; a running handler is aborted',
    act: (operator, selection, options) => operator.cancel(selection, options),
  },
  {
    name: 'quarantine',
    summary: 'Park jobs until they are redriven or cancelled',
    act: (operator, selection, options) => operator.quarantine(selection, options),
  },
  {
    name: 'redrive',
    summary: 'Run parked and failed jobs again, with fresh budgets',
    act: (operator, selection, options) => operator.redrive(selection, options),
  },
  {
    name: 'discard',
    summary: 'End parked jobs as failed, without running them again',
    act: (operator, selection, options) => operator.discard(selection, options),
  },
  {
    name: 'force',
    summary: 'Move jobs to a state without an edge',
    details: 'Held and succeeded states cannot be entered, and final states cannot be left.',
    takes: 'state',
    act: (operator, selection, options, { state }) =>
      operator.force(selection, state as string, options),
  },
  {
    name: 'reschedule',
    summary: 'Change the due time of jobs',
    takes: 'runAt',
    act: (operator, selection, options, { runAt }) =>
      operator.reschedule(selection, new Date(runAt as number), options),
  },
  {
    name: 'prioritise',
    summary: 'Change the priority of jobs; smaller numbers are claimed first',
    details:
      'A job that is ahead by some time has the number 0, and is claimed as if it had been due ' +
      'so much earlier. So it cannot keep other jobs waiting without end.',
    takes: 'priority',
    act: (operator, selection, options, { priority }) =>
      operator.prioritise(selection, priority as Priority, options),
  },
  {
    name: 'approve',
    summary: 'Approve jobs that wait for an approval, and the recovery of stalled jobs',
    details:
      'A job that waits for an approval goes on, and its handler learns who approved it. The ' +
      'recovery of a job whose lease has expired may wait for an approval as well.',
    act: (operator, selection, options) => operator.approve(selection, options),
  },
  {
    name: 'reject',
    summary: 'Reject jobs that wait for an approval',
    details: 'A rejected job goes on: its handler decides what follows from the rejection.',
    act: (operator, selection, options) => operator.reject(selection, options),
  },
]
