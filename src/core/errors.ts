/**
 * Every Pawl error has its own class and a stable code. The message says what happened and why, the
 * hint says what to do, and the details are plain data for programs. The deciders return expected
 * refusals as values of these classes. Broken promises are thrown.
 */

import { brief } from './format.ts'

/** Serialisable data about an error. */
export type ErrorDetails = Readonly<Record<string, unknown>>

/** The base class of all Pawl errors. */
export abstract class PawlError extends Error {
  /** Stable across releases: programs may branch on it. */
  abstract readonly code: string
  /** What the reader can do, in one sentence. */
  readonly hint: string
  readonly details: ErrorDetails

  constructor(message: string, hint: string, details: ErrorDetails = {}) {
    super(message)
    this.name = new.target.name
    this.hint = hint
    this.details = details
  }
}

/** Returns the message of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The definition of a machine breaks a rule of soundness. The machine was not defined. */
export class MachineUnsound extends PawlError {
  readonly code = 'E_MACHINE_UNSOUND'
  constructor(name: string, problems: readonly string[]) {
    super(
      `Machine "${name}" is not sound: ${problems.join('; ')}`,
      `Change the definition of "${name}"; the message lists every problem.`,
      { machine: name, problems },
    )
  }
}

/** The definition of a job, a lifecycle or a policy contradicts itself or its lifecycle. */
export class DefinitionInvalid extends PawlError {
  readonly code = 'E_DEFINITION_INVALID'
  constructor(what: string, why: string, hint = `Change the definition of ${what}.`) {
    super(`Invalid definition of ${what}: ${why}`, hint, { what, why })
  }
}

/** The machine has no such edge from this state. Nothing was written. */
export class InvalidTransition extends PawlError {
  readonly code = 'E_TRANSITION_INVALID'
  readonly from: string
  readonly to: string
  readonly allowed: readonly string[]
  /**
   * `trigger` is the requested trigger, if the caller did not name a target state. `more` says why
   * the command is refused even if such an edge exists, and what to do instead.
   */
  constructor(
    machine: string,
    from: string,
    to: string,
    allowed: readonly string[],
    trigger?: string,
    more: { readonly why?: string; readonly instead?: string } = {},
  ) {
    const ways = allowed.length > 0 ? `leads only to ${allowed.join(', ')}` : 'has no outgoing edge'
    const hint =
      trigger === undefined
        ? `In machine "${machine}", ${from} ${ways}.`
        : `In machine "${machine}", ${trigger} does not apply in ${from}.`
    super(
      `Invalid transition: ${from} → ${to}${more.why === undefined ? '' : `: ${more.why}`}`,
      more.instead === undefined ? hint : `${hint} ${more.instead}`,
      { machine, from, to, allowed, trigger },
    )
    this.from = from
    this.to = to
    this.allowed = allowed
  }
}

/** Another writer changed the job between the read and the write. */
export class TransitionRace extends PawlError {
  readonly code = 'E_TRANSITION_RACE'
  constructor(jobId: string) {
    super(
      `Another process changed job ${jobId} at the same time`,
      'Nothing was written. Read the job again and repeat the command.',
      {
        jobId,
      },
    )
  }
}

/** No job with this id exists. */
export class JobNotFound extends PawlError {
  readonly code = 'E_JOB_NOT_FOUND'
  constructor(jobId?: string) {
    const what = jobId === undefined ? 'The job was' : `Job ${jobId} was`
    super(
      `${what} not found`,
      'Check the id and the store (pawl job list). Retention deletes ended jobs.',
      { jobId },
    )
  }
}

/** A job with this id already exists. */
export class JobExists extends PawlError {
  readonly code = 'E_JOB_EXISTS'
  constructor(jobId: string) {
    super(
      `Job ${jobId} already exists`,
      'Use another `jobId`. To enqueue at most once, use `key` instead.',
      { jobId },
    )
  }
}

/** The job has ended, and this command does not apply to ended jobs. */
export class JobEnded extends PawlError {
  readonly code = 'E_JOB_ENDED'
  constructor(jobId: string, state: string, command: string) {
    super(
      `Job ${jobId} has ended in ${state}: ${command} does not apply`,
      `To run it again: pawl job retry ${jobId} --reason "…".`,
      { jobId, state, command },
    )
  }
}

/** The job has started, and this command applies only to jobs that have not. */
export class JobStarted extends PawlError {
  readonly code = 'E_JOB_STARTED'
  constructor(jobId: string, command: string) {
    super(
      `Job ${jobId} has already started: ${command} applies only before the first attempt`,
      'Let the job end, or cancel it and enqueue a new one.',
      { jobId, command },
    )
  }
}

/** A wait of a job, for people: `sleep "cool-off"`, `signal "approval"`. */
type WaitWords = readonly string[]

/** The handler waits for other things, or in another order, than its earlier attempts. */
export class ReplayMismatch extends PawlError {
  readonly code = 'E_REPLAY_MISMATCH'
  constructor(jobId: string, before: WaitWords, now: WaitWords) {
    const list = (waits: WaitWords) => (waits.length === 0 ? 'nothing' : waits.join(', '))
    super(
      `Job ${jobId} has waited for ${list(before)}, and its handler now waits for ${list(now)}`,
      'A handler must wait for the same things in the same order in every attempt. Run the code ' +
        `that began the job, then: pawl job retry ${jobId} --reason "…".`,
      { jobId, before: [...before], now: [...now] },
    )
  }
}

/** Why a fence was rejected. */
export type StaleBecause = 'not-held' | 'attempt' | 'claim' | 'expired'

/** The writer no longer holds the job: its attempt or claim is old, or its lease has expired. */
export class StaleFence extends PawlError {
  readonly code = 'E_STALE_FENCE'
  constructor(jobId: string, because: StaleBecause) {
    super(
      `This execution no longer holds the lease on job ${jobId} (${because})`,
      'Stop working on the job: nothing was changed, and another execution may hold it.',
      { jobId, because },
    )
  }
}

/** The handler's abort signal carries this error if the lease is lost while the handler runs. */
export class LeaseLost extends PawlError {
  readonly code = 'E_LEASE_LOST'
  constructor(jobId: string, attempt: number) {
    super(
      `Execution ${jobId}/${attempt} lost its lease`,
      'Stop working on the job: every later write of this execution is rejected.',
      { jobId, attempt },
    )
  }
}

/** The lease has not expired yet, so it cannot be recovered. */
export class LeaseLive extends PawlError {
  readonly code = 'E_LEASE_LIVE'
  constructor(jobId: string, leaseUntil: number) {
    super(
      `The lease on job ${jobId} has not expired`,
      'Wait: a lease that its worker does not renew expires by itself.',
      { jobId, leaseUntil },
    )
  }
}

/** The deadline of the job has passed: nothing may start or commit any more. */
export class DeadlinePassed extends PawlError {
  readonly code = 'E_DEADLINE_PASSED'
  constructor(jobId: string, deadlineAt: number) {
    super(
      `The deadline of job ${jobId} has passed`,
      'Stop: the job fails and is not retried. Enqueue it with a later deadline if it needs one.',
      { jobId, deadlineAt },
    )
  }
}

/** The effect of the job is committed, so the job can only succeed. */
export class Committed extends PawlError {
  readonly code = 'E_COMMITTED'
  constructor(jobId: string, command: string) {
    super(
      `Job ${jobId} is committed: ${command} no longer applies`,
      'Its effect is already applied. To run the same input again, copy the job.',
      { jobId, command },
    )
  }
}

/** The lifecycle does not have this command in any state. */
export class Unsupported extends PawlError {
  readonly code = 'E_UNSUPPORTED'
  /** `hint` says what to do instead, if the caller knows it. */
  constructor(
    lifecycle: string,
    command: string,
    hint = 'Use another command, or a lifecycle that has it.',
  ) {
    super(`Lifecycle "${lifecycle}" has no ${command}`, hint, { lifecycle, command })
  }
}

/** The due time of the job has not been reached. */
export class NotDue extends PawlError {
  readonly code = 'E_NOT_DUE'
  constructor(jobId: string, runAt: number | null) {
    super(
      runAt === null
        ? `Job ${jobId} has no due time: it was enqueued with \`hold\``
        : `Job ${jobId} is not due yet`,
      runAt === null
        ? `Submit it first: pawl job submit ${jobId} --reason "…".`
        : `Wait, or make it due: pawl job reschedule ${jobId} --now --reason "…".`,
      { jobId, runAt },
    )
  }
}

/** The job is parked: it waits for an operator. */
export class JobParked extends PawlError {
  readonly code = 'E_JOB_PARKED'
  constructor(jobId: string, reason: string) {
    super(
      `Job ${jobId} is parked (${reason})`,
      `Let it run again: pawl job redrive ${jobId} --reason "…". Or end it: pawl job cancel.`,
      { jobId, reason },
    )
  }
}

/** The job waits for other jobs, and nothing but their end may start it (promise P19). */
export class DependencyOpen extends PawlError {
  readonly code = 'E_DEPENDENCY_OPEN'
  /** `dependency` is the job that it waits for, or that came out otherwise than needed. */
  constructor(jobId: string, command: string, dependency?: string) {
    const what = dependency === undefined ? 'other jobs' : `job ${dependency}`
    super(
      `Job ${jobId} waits for ${what}: ${command} does not apply`,
      dependency === undefined
        ? `See what it waits for: pawl job explain ${jobId}. Or end it: pawl job cancel ${jobId}.`
        : `See why that job has not succeeded: pawl job explain ${dependency}. When it succeeds, ` +
            'this job starts by itself.',
      { jobId, command, dependency },
    )
  }
}

/** An argument of a command is missing, out of bounds or malformed. Nothing was decided. */
export class CommandInvalid extends PawlError {
  readonly code = 'E_COMMAND_INVALID'
  constructor(
    field: string,
    why: string,
    hint = `Change "${brief(field)}" and repeat the call. Nothing was written.`,
  ) {
    super(`"${brief(field)}" ${why}`, hint, { field, why })
  }
}

/** A value is too large or too deep, or cannot be stored and read back unchanged. */
export class ValueInvalid extends PawlError {
  readonly code = 'E_VALUE_INVALID'
  constructor(path: string, why: string, hint = 'Pass plain data within the bounds.') {
    super(`The value at ${path} ${why}`, hint, { path, why })
  }
}

/** This process does not know the lifecycle or its version. */
export class LifecycleUnknown extends PawlError {
  readonly code = 'E_LIFECYCLE_UNKNOWN'
  constructor(name: string, version: number) {
    super(
      `Lifecycle "${name}" version ${version} is not known to this process`,
      'Pass it in `lifecycles` or as the lifecycle of one of `jobs` in createPawl (on the ' +
        'command line: --jobs FILE).',
      { name, version },
    )
  }
}

/** The store has another definition under the same name and version of a lifecycle. */
export class MachineChanged extends PawlError {
  readonly code = 'E_MACHINE_CHANGED'
  constructor(
    name: string,
    version: number,
    parts: readonly string[],
    hashes?: { readonly stored: string; readonly own: string },
  ) {
    super(
      `Lifecycle "${name}" version ${version} is stored with another definition: ` +
        `${parts.join(', ')} differ`,
      `Give the changed definition version ${version + 1}, with "from: { ${version}: { … } }".`,
      { name, version, parts, ...hashes },
    )
  }
}

/** The mapping from an earlier version does not cover the states that its jobs can be in. */
export class MigrationInvalid extends PawlError {
  readonly code = 'E_MIGRATION_INVALID'
  constructor(name: string, from: number, to: number, problems: readonly string[]) {
    super(
      `Lifecycle "${name}" cannot migrate jobs from version ${from} to ${to}: ` +
        problems.join('; '),
      `Correct "from: { ${from}: { … } }" of version ${to}; every problem is listed.`,
      { name, from, to, problems },
    )
  }
}

/** A fact or an event does not follow from those before it: the ledger or log is damaged. */
export class LedgerBroken extends PawlError {
  readonly code = 'E_LEDGER_BROKEN'
  constructor(subject: string, seq: number, why: string) {
    super(
      `The record of ${subject} is broken at seq ${seq}: ${why}`,
      'Run "pawl doctor --full --plan" to see which repair is possible.',
      { subject, seq, why },
    )
  }
}

/** No run with this id exists. */
export class RunNotFound extends PawlError {
  readonly code = 'E_RUN_NOT_FOUND'
  constructor() {
    super('The run was not found', 'Check the id (pawl run list), or start the run.')
  }
}

/** A run with this id already exists. */
export class RunExists extends PawlError {
  readonly code = 'E_RUN_EXISTS'
  constructor(runId: string) {
    super(
      `Run ${runId} already exists`,
      `Resume it (pawl run resume ${runId}), or use another id.`,
      { runId },
    )
  }
}

/** The run has ended. Nothing can be added to it. */
export class RunEnded extends PawlError {
  readonly code = 'E_RUN_ENDED'
  constructor(runId: string, state: string) {
    super(
      `Run ${runId} has ended in ${state}`,
      `To continue from an earlier event: pawl run fork ${runId} --at SEQ.`,
      { runId, state },
    )
  }
}

/** The edge exists, but its guard does not hold now. */
export class GuardRefused extends PawlError {
  readonly code = 'E_GUARD_REFUSED'
  constructor(from: string, to: string, why: string) {
    super(
      `The guard of ${from} → ${to} does not hold: ${why}`,
      'Record what the guard requires first.',
      {
        from,
        to,
        why,
      },
    )
  }
}

/** The run has visited no stable state to which it could be rewound. */
export class RewindRefused extends PawlError {
  readonly code = 'E_REWIND_REFUSED'
  constructor(runId: string, why: string) {
    super(`Run ${runId} cannot be rewound: ${why}`, 'Continue in place, or fork the run.', {
      runId,
      why,
    })
  }
}
