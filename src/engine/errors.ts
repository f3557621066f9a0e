/** The errors of the library: reasons why an attempt is aborted, and refused calls. */
import { messageOf, PawlError } from '../core/errors.ts'

/** The cancellation of the job was requested. */
export class Cancelled extends PawlError {
  readonly code = 'E_CANCELLED'
  constructor(jobId: string) {
    super(`Job ${jobId} was cancelled`, 'Stop; the result of this attempt is ignored.', { jobId })
  }
}

/** The attempt exceeded `timeout`. */
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

/** The handler exceeded `stallTimeout`. */
export class AttemptStalled extends PawlError {
  readonly code = 'E_ATTEMPT_STALLED'
  constructor(jobId: string, stallTimeoutMs: number) {
    super(
      `The handler of job ${jobId} showed no activity for ${stallTimeoutMs} ms`,
      'Stop; it is recorded as a failure. Call progress, count, step or commit more often.',
      { jobId, stallTimeoutMs },
    )
  }
}

/** The job exceeded its deadline. */
export class DeadlinePassed extends PawlError {
  readonly code = 'E_DEADLINE_PASSED'
  constructor(jobId: string, deadlineAt: number) {
    super(
      `The deadline of job ${jobId} has passed`,
      'Stop; the job has failed and is not retried. Set a later deadline if it needs more time.',
      { jobId, deadlineAt },
    )
  }
}

/** The worker is stopping and `drain` is over. */
export class ShuttingDown extends PawlError {
  readonly code = 'E_SHUTTING_DOWN'
  constructor() {
    super('The worker is stopping', 'Stop; the job is released, and another worker claims it.')
  }
}

/** A handler ignored its abort signal, and `onStuck` is 'exit'. */
export class WorkerStuck extends PawlError {
  readonly code = 'E_WORKER_STUCK'
  constructor(workerId: string, jobId: string, forMs: number) {
    super(
      `Worker ${workerId} has stopped: the handler of job ${jobId} was still running ${forMs} ms \
after its signal was aborted`,
      'Restart the process, and make the handler stop when its signal is aborted.',
      { workerId, jobId, forMs },
    )
  }
}

/** The schema of the job type rejected an input. */
export class InputInvalid extends PawlError {
  readonly code = 'E_INPUT_INVALID'
  constructor(type: string, why: string) {
    super(`The input of a job of type "${type}" is invalid: ${why}`, 'Correct the input.', {
      type,
      why,
    })
  }
}

/** The job did not end within the `timeout` of `result`. */
export class ResultTimeout extends PawlError {
  readonly code = 'E_RESULT_TIMEOUT'
  constructor(jobId: string, timeoutMs: number) {
    super(`Job ${jobId} has not ended within ${timeoutMs} ms`, 'The job goes on; wait again.', {
      jobId,
      timeoutMs,
    })
  }
}

/** Two job types have the same name. */
export class JobTypeTwice extends PawlError {
  readonly code = 'E_JOB_TYPE_TWICE'
  constructor(type: string) {
    super(`Two job types are named "${type}"`, 'Give each job type its own name.', { type })
  }
}

/** The job has not ended, so a copy would repeat its work. */
export class JobNotEnded extends PawlError {
  readonly code = 'E_JOB_NOT_ENDED'
  constructor(jobId: string, command: string) {
    super(`Job ${jobId} has not ended: ${command} does not apply`, 'Retry or cancel it.', {
      jobId,
      command,
    })
  }
}

/** The job is running, and the command is for jobs that are not. */
export class JobRunning extends PawlError {
  readonly code = 'E_JOB_RUNNING'
  constructor(jobId: string, command: string, stalled: boolean) {
    super(
      `Job ${jobId} is running: ${command} does not apply`,
      stalled
        ? 'Its worker does not renew the lease: approve its recovery with `pawl job approve`.'
        : 'Wait until it has ended, or cancel it.',
      { jobId, command, stalled },
    )
  }
}

/** A dry run listed the job, but the filter no longer matches it. */
export class JobChanged extends PawlError {
  readonly code = 'E_JOB_CHANGED'
  constructor(jobId: string) {
    super(
      `Job ${jobId} has changed since it was listed: the filter no longer matches it`,
      'Look at the job. If the command should still apply, select the job by its id.',
      { jobId },
    )
  }
}

/** There is no effect with this key. */
export class EffectNotFound extends PawlError {
  readonly code = 'E_EFFECT_NOT_FOUND'
  constructor(key: string) {
    super(`There is no effect ${key}`, 'List the effects of its job: pawl effect list --job ID.', {
      key,
    })
  }
}

/** The effect was delivered, and a second delivery could do its work twice. */
export class EffectDelivered extends PawlError {
  readonly code = 'E_EFFECT_DELIVERED'
  constructor(key: string) {
    super(
      `Effect ${key} was delivered: retry does not apply`,
      'Only effects that are parked or wait for their next try can be retried.',
      { key },
    )
  }
}

/** The job does not wait for approval. */
export class JobNotStalled extends PawlError {
  readonly code = 'E_JOB_NOT_STALLED'
  constructor(jobId: string) {
    super(
      `Job ${jobId} does not wait for the approval of its recovery`,
      "Approval is for running jobs with recovery 'operator' whose lease has expired.",
      { jobId },
    )
  }
}

/** A commit declared an effect that its job type does not define. */
export class EffectUnknown extends PawlError {
  readonly code = 'E_EFFECT_UNKNOWN'
  constructor(type: string, effect: string) {
    super(
      `Job type "${type}" has no effect "${effect}", so it could not be delivered`,
      'Add it to `effects` of the job type, with its function. The commit failed.',
      { type, effect },
    )
  }
}

/** The delivery of an effect exceeded its `timeout`. */
export class DeliveryTimeout extends PawlError {
  readonly code = 'E_DELIVERY_TIMEOUT'
  constructor(key: string, timeoutMs: number) {
    super(
      `The delivery of ${key} took longer than ${timeoutMs} ms`,
      'Stop; it is retried. Give the effect a longer timeout if it needs one.',
      { key, timeoutMs },
    )
  }
}

/** The name of a store has an unknown form. */
export class StoreNameInvalid extends PawlError {
  readonly code = 'E_STORE_NAME_INVALID'
  constructor(name: string) {
    super(
      `"${name}" is not the name of a store`,
      "Use 'sqlite:./jobs.db', 'sqlite::memory:' or 'postgres://…'.",
      { name },
    )
  }
}

/** The signal ended the wait for the database. */
export class ConnectAborted extends PawlError {
  readonly code = 'E_CONNECT_ABORTED'
  constructor() {
    super('The wait for the database was aborted', 'Open Pawl again when the database is up.')
  }
}

/**
 * A renewal of leases failed. The leases are valid until they expire, and the renewal is retried.
 */
export class HeartbeatFailed extends PawlError {
  readonly code = 'E_HEARTBEAT_FAILED'
  constructor(cause: unknown) {
    const { code, details } = (cause ?? {}) as { code?: unknown; details?: unknown }
    super(
      `Leases could not be renewed: ${messageOf(cause)}`,
      'See the cause. If it lasts longer than the lease, the worker loses these jobs.',
      { ...(typeof code === 'string' && { cause: code }), ...(details as object | undefined) },
    )
    this.cause = cause
  }
}
