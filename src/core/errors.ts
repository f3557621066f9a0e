/**
 * Every error that Pawl gives has one class and one stable code. The message says what happened and
 * why, the hint says what to do, and the details are plain data for programs. Expected refusals are
 * returned by the deciders as values of these same classes; broken promises are thrown.
 */

/** Plain, serialisable facts about an error. */
export type ErrorDetails = Readonly<Record<string, unknown>>

/** The base of every error of Pawl. */
export abstract class PawlError extends Error {
  /** Stable across releases: programs may branch on it. */
  abstract readonly code: string
  /** What the reader can do about it, in one sentence. */
  readonly hint: string
  readonly details: ErrorDetails

  constructor(message: string, hint: string, details: ErrorDetails = {}) {
    super(message)
    this.name = new.target.name
    this.hint = hint
    this.details = details
  }
}

/** What anything that was thrown says. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** A machine's definition breaks a rule of soundness; nothing was defined. */
export class MachineUnsound extends PawlError {
  readonly code = 'E_MACHINE_UNSOUND'
  constructor(name: string, problems: readonly string[]) {
    super(
      `Machine "${name}" is not sound: ${problems.join('; ')}`,
      'Correct the definition; every problem is listed.',
      { machine: name, problems },
    )
  }
}

/** A definition (of a job, a lifecycle or a policy) contradicts itself or its lifecycle. */
export class DefinitionInvalid extends PawlError {
  readonly code = 'E_DEFINITION_INVALID'
  constructor(what: string, why: string) {
    super(`${what} cannot be defined so: ${why}`, 'Change the definition.', { what, why })
  }
}

/** The machine has no such edge from this state; nothing was written. */
export class InvalidTransition extends PawlError {
  readonly code = 'E_TRANSITION_INVALID'
  readonly from: string
  readonly to: string
  readonly allowed: readonly string[]
  /**
   * `trigger` is what was asked for, where it was not a state. `more` says why the command is
   * refused although there may be such an edge, and what to do instead.
   */
  constructor(
    machine: string,
    from: string,
    to: string,
    allowed: readonly string[],
    trigger?: string,
    more: { readonly why?: string; readonly instead?: string } = {},
  ) {
    const ways = allowed.length > 0 ? `leads only to ${allowed.join(', ')}` : 'leads nowhere'
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

/** The compare-and-set lost: somebody else moved the job between the read and the write. */
export class TransitionRace extends PawlError {
  readonly code = 'E_TRANSITION_RACE'
  constructor(jobId: string) {
    super(`Job ${jobId} changed while it was being moved`, 'Read it again and decide anew.', {
      jobId,
    })
  }
}

/** There is no such job. */
export class JobNotFound extends PawlError {
  readonly code = 'E_JOB_NOT_FOUND'
  constructor(jobId?: string) {
    const what = jobId === undefined ? 'The job was' : `Job ${jobId} was`
    super(`${what} not found`, 'Check the id; retention removes ended jobs.', { jobId })
  }
}

/** A job with this id exists already. */
export class JobExists extends PawlError {
  readonly code = 'E_JOB_EXISTS'
  constructor(jobId: string) {
    super(`Job ${jobId} exists already`, 'Use a new id.', { jobId })
  }
}

/** The job has ended, and this command does not apply to ended jobs. */
export class JobEnded extends PawlError {
  readonly code = 'E_JOB_ENDED'
  constructor(jobId: string, state: string, command: string) {
    super(
      `Job ${jobId} has ended in ${state}: ${command} does not apply`,
      'Ended jobs change only by the operator edges of their lifecycle, such as redrive.',
      { jobId, state, command },
    )
  }
}

/** The job has been started, and this command is for jobs that have not. */
export class JobStarted extends PawlError {
  readonly code = 'E_JOB_STARTED'
  constructor(jobId: string, command: string) {
    super(
      `Job ${jobId} has been started: ${command} comes too late`,
      'Let it end, or cancel it and enqueue another.',
      { jobId, command },
    )
  }
}

/** Why a fence did not hold. */
export type StaleBecause = 'not-held' | 'attempt' | 'claim' | 'expired'

/** The writer no longer holds the job: its attempt or claim is old, or its lease has run out. */
export class StaleFence extends PawlError {
  readonly code = 'E_STALE_FENCE'
  constructor(jobId: string, because: StaleBecause) {
    super(
      `The lease on job ${jobId} is no longer yours (${because})`,
      'Stop working on it: another execution owns the job, and nothing was changed.',
      { jobId, because },
    )
  }
}

/** The lease was lost while the handler ran; its abort signal carries this. */
export class LeaseLost extends PawlError {
  readonly code = 'E_LEASE_LOST'
  constructor(jobId: string, attempt: number) {
    super(
      `Execution ${jobId}/${attempt} lost its lease`,
      'Stop: every later write of this execution is refused.',
      { jobId, attempt },
    )
  }
}

/** The lease still runs, so nobody may expire it. */
export class LeaseLive extends PawlError {
  readonly code = 'E_LEASE_LIVE'
  constructor(jobId: string, leaseUntil: number) {
    super(`The lease on job ${jobId} still runs`, 'Wait until it has expired.', {
      jobId,
      leaseUntil,
    })
  }
}

/** The job's effect is committed; from here it can only succeed. */
export class Committed extends PawlError {
  readonly code = 'E_COMMITTED'
  constructor(jobId: string, command: string) {
    super(
      `Job ${jobId} is committed: ${command} comes too late`,
      'Its effect is true already. To run the same input once more, copy the job.',
      { jobId, command },
    )
  }
}

/** The lifecycle does not have this command at all. */
export class Unsupported extends PawlError {
  readonly code = 'E_UNSUPPORTED'
  /** `hint` says what to do instead, where the caller knows it. */
  constructor(
    lifecycle: string,
    command: string,
    hint = 'Choose another command, or a lifecycle that has it.',
  ) {
    super(`Lifecycle "${lifecycle}" has no ${command}`, hint, { lifecycle, command })
  }
}

/** The job's time has not come. */
export class NotDue extends PawlError {
  readonly code = 'E_NOT_DUE'
  constructor(jobId: string, runAt: number | null) {
    super(
      `Job ${jobId} is not due`,
      runAt === null ? 'It has no due time: submit it first.' : 'Wait, or reschedule it.',
      { jobId, runAt },
    )
  }
}

/** The job is parked: it waits for an operator. */
export class JobParked extends PawlError {
  readonly code = 'E_JOB_PARKED'
  constructor(jobId: string, reason: string) {
    super(`Job ${jobId} is parked (${reason})`, 'Redrive or cancel it.', { jobId, reason })
  }
}

/** A command's argument is missing, out of bounds or malformed; nothing was decided. */
export class CommandInvalid extends PawlError {
  readonly code = 'E_COMMAND_INVALID'
  constructor(field: string, why: string) {
    super(`"${field}" ${why}`, 'Correct the argument.', { field, why })
  }
}

/** A value cannot be written as JSON and read back as the same value, or is too large or deep. */
export class ValueInvalid extends PawlError {
  readonly code = 'E_VALUE_INVALID'
  constructor(path: string, why: string) {
    super(`The value at ${path} ${why}`, 'Send plain JSON data within the bounds.', { path, why })
  }
}

/** A lifecycle or version that this process does not know; it is reported, never guessed. */
export class LifecycleUnknown extends PawlError {
  readonly code = 'E_LIFECYCLE_UNKNOWN'
  constructor(name: string, version: number) {
    super(
      `Lifecycle "${name}" version ${version} is not known here`,
      'Run a release of the program that defines it.',
      { name, version },
    )
  }
}

/** A version of a lifecycle is stored with another definition; the program may not use it. */
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

/** The mapping of an earlier version does not fit the states that its jobs can be in. */
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

/** A fact or an event does not follow from those before it: the record is damaged. */
export class LedgerBroken extends PawlError {
  readonly code = 'E_LEDGER_BROKEN'
  constructor(subject: string, seq: number, why: string) {
    super(`The record of ${subject} is broken at seq ${seq}: ${why}`, 'Run the doctor.', {
      subject,
      seq,
      why,
    })
  }
}

/** There is no such run. */
export class RunNotFound extends PawlError {
  readonly code = 'E_RUN_NOT_FOUND'
  constructor() {
    super('The run was not found', 'Check the id, or create the run.')
  }
}

/** A run with this id exists already. */
export class RunExists extends PawlError {
  readonly code = 'E_RUN_EXISTS'
  constructor(runId: string) {
    super(`Run ${runId} exists already`, 'Resume it, or use a new id.', { runId })
  }
}

/** The run has ended; nothing can be added to it. */
export class RunEnded extends PawlError {
  readonly code = 'E_RUN_ENDED'
  constructor(runId: string, state: string) {
    super(`Run ${runId} has ended in ${state}`, 'Fork it from an earlier event.', { runId, state })
  }
}

/** The edge exists, but its guard does not hold in the run's present state. */
export class GuardRefused extends PawlError {
  readonly code = 'E_GUARD_REFUSED'
  constructor(from: string, to: string, why: string) {
    super(`${from} → ${to} is not open yet: ${why}`, 'Record what the guard asks for first.', {
      from,
      to,
      why,
    })
  }
}

/** The run's log visited no stable state to which it could be rewound. */
export class RewindRefused extends PawlError {
  readonly code = 'E_REWIND_REFUSED'
  constructor(runId: string, why: string) {
    super(`Run ${runId} cannot be rewound: ${why}`, 'Continue in place, or fork the run.', {
      runId,
      why,
    })
  }
}
