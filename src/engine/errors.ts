/** Why an attempt is aborted, and what the library itself can refuse. One class, one code each. */
import { messageOf, PawlError } from '../core/errors.ts'

/** Somebody asked for the job to be cancelled. */
export class Cancelled extends PawlError {
  readonly code = 'E_CANCELLED'
  constructor(jobId: string) {
    super(`Job ${jobId} was cancelled`, 'Stop; what the attempt returns is not wanted.', { jobId })
  }
}

/** The attempt has taken longer than it may. */
export class AttemptTimeout extends PawlError {
  readonly code = 'E_ATTEMPT_TIMEOUT'
  constructor(jobId: string, timeoutMs: number) {
    super(
      `The attempt at job ${jobId} took longer than ${timeoutMs} ms`,
      'Stop; it is recorded as a failure. Give the job a longer timeout if it needs one.',
      { jobId, timeoutMs },
    )
  }
}

/** The attempt has shown no sign of life for longer than it may. */
export class AttemptStalled extends PawlError {
  readonly code = 'E_ATTEMPT_STALLED'
  constructor(jobId: string, stallTimeoutMs: number) {
    super(
      `The attempt at job ${jobId} showed no sign of life for ${stallTimeoutMs} ms`,
      'Stop; it is recorded as a failure. Call progress, count, step or commit more often.',
      { jobId, stallTimeoutMs },
    )
  }
}

/** The job as a whole has taken longer than it may. */
export class DeadlinePassed extends PawlError {
  readonly code = 'E_DEADLINE_PASSED'
  constructor(jobId: string, deadlineAt: number) {
    super(
      `The deadline of job ${jobId} has passed`,
      'Stop; the job has failed for good. Give it a later deadline if it needs one.',
      { jobId, deadlineAt },
    )
  }
}

/** The worker is stopping and has waited for as long as it was told to. */
export class ShuttingDown extends PawlError {
  readonly code = 'E_SHUTTING_DOWN'
  constructor() {
    super('The worker is stopping', 'Stop; the job is given back and another worker takes it.')
  }
}

/** A handler ignored its abort, and the worker was told to end for that. */
export class WorkerStuck extends PawlError {
  readonly code = 'E_WORKER_STUCK'
  constructor(workerId: string, jobId: string, forMs: number) {
    super(
      `Worker ${workerId} has ended: the handler of job ${jobId} went on for ${forMs} ms after \
its abort`,
      'Start the process anew, and let the handler of this kind of job obey its signal.',
      { workerId, jobId, forMs },
    )
  }
}

/** The input of a job is not what its schema wants. */
export class InputInvalid extends PawlError {
  readonly code = 'E_INPUT_INVALID'
  constructor(type: string, why: string) {
    super(`The input of a job of type "${type}" is refused: ${why}`, 'Mend the input.', {
      type,
      why,
    })
  }
}

/** The job has not come to an end in the time that the caller was ready to wait. */
export class ResultTimeout extends PawlError {
  readonly code = 'E_RESULT_TIMEOUT'
  constructor(jobId: string, timeoutMs: number) {
    super(`Job ${jobId} has not ended within ${timeoutMs} ms`, 'It goes on; ask again.', {
      jobId,
      timeoutMs,
    })
  }
}

/** Two kinds of job have one name. */
export class JobTypeTwice extends PawlError {
  readonly code = 'E_JOB_TYPE_TWICE'
  constructor(type: string) {
    super(`Two jobs are named "${type}"`, 'Give each kind of job a name of its own.', { type })
  }
}

/** The job has not ended, so a copy would do its work a second time. */
export class JobNotEnded extends PawlError {
  readonly code = 'E_JOB_NOT_ENDED'
  constructor(jobId: string, command: string) {
    super(`Job ${jobId} has not ended: ${command} does not apply`, 'Retry or cancel it.', {
      jobId,
      command,
    })
  }
}

/** The job runs, and the command is for jobs that do not. */
export class JobRunning extends PawlError {
  readonly code = 'E_JOB_RUNNING'
  constructor(jobId: string, command: string, stalled: boolean) {
    super(
      `Job ${jobId} is running: ${command} does not apply`,
      stalled ? 'Its worker went silent: approve its recovery.' : 'Let it end, or cancel it.',
      { jobId, command, stalled },
    )
  }
}

/** The job was listed by a dry run, and is not what the filter shows any more. */
export class JobChanged extends PawlError {
  readonly code = 'E_JOB_CHANGED'
  constructor(jobId: string) {
    super(
      `Job ${jobId} has changed since it was listed: the filter no longer shows it`,
      'Look at the job; if it is still meant, select it by its id.',
      { jobId },
    )
  }
}

/** The job does not wait for anybody's approval. */
export class JobNotStalled extends PawlError {
  readonly code = 'E_JOB_NOT_STALLED'
  constructor(jobId: string) {
    super(
      `Job ${jobId} is not held by a worker that went silent`,
      "Approval is for jobs with recovery 'operator' whose lease has run out.",
      { jobId },
    )
  }
}

/** A commit declared an effect that its kind of job has no function for. */
export class EffectUnknown extends PawlError {
  readonly code = 'E_EFFECT_UNKNOWN'
  constructor(type: string, effect: string) {
    super(
      `Jobs of type "${type}" have no effect "${effect}", so nobody could deliver it`,
      'Name it in the effects of the job, with the function that delivers it. The commit failed.',
      { type, effect },
    )
  }
}

/** The delivery of an effect has taken longer than it may. */
export class DeliveryTimeout extends PawlError {
  readonly code = 'E_DELIVERY_TIMEOUT'
  constructor(key: string, timeoutMs: number) {
    super(
      `The delivery of ${key} took longer than ${timeoutMs} ms`,
      'Stop; it is tried again. Give the effect a longer timeout if it needs one.',
      { key, timeoutMs },
    )
  }
}

/** A store is named in a way that is not known. */
export class StoreNameInvalid extends PawlError {
  readonly code = 'E_STORE_NAME_INVALID'
  constructor(name: string) {
    super(
      `"${name}" names no store`,
      "Use 'sqlite:./jobs.db', 'sqlite::memory:' or 'postgres://…'.",
      { name },
    )
  }
}

/** Waiting for the database was ended by its signal. */
export class ConnectAborted extends PawlError {
  readonly code = 'E_CONNECT_ABORTED'
  constructor() {
    super('The wait for the database was ended', 'Open Pawl again when the database is there.')
  }
}

/** Leases could not be renewed; they last until they expire, and the next renewal is tried soon. */
export class HeartbeatFailed extends PawlError {
  readonly code = 'E_HEARTBEAT_FAILED'
  constructor(cause: unknown) {
    const { code, details } = (cause ?? {}) as { code?: unknown; details?: unknown }
    super(
      `Leases could not be renewed: ${messageOf(cause)}`,
      'See the cause. If it lasts for longer than the lease, the jobs are given up here.',
      { ...(typeof code === 'string' && { cause: code }), ...(details as object | undefined) },
    )
    this.cause = cause
  }
}
