/** The errors of the library: reasons why an attempt is aborted, and refused calls. */
import { messageOf, PawlError } from '../core/errors.ts'
import { Terminal } from '../core/failure.ts'
import { brief, span } from '../core/format.ts'
import { withoutSecrets } from '../core/redact.ts'
import type { ChildOutcome } from './outcome.ts'

/** The cancellation of the job was requested. */
export class Cancelled extends PawlError {
  readonly code = 'E_CANCELLED'
  constructor(jobId: string) {
    super(`Job ${jobId} was cancelled`, 'Stop; the result of this attempt is ignored.', { jobId })
  }
}

/** `enqueueMany` ended before the end of its stream; `cause` is the reason. */
export class EnqueueInterrupted extends PawlError {
  readonly code = 'E_ENQUEUE_INTERRUPTED'
  /** How many entries of the stream are enqueued, counted from its beginning. */
  readonly count: number
  constructor(done: { count: number; created: number }, uncertain: number, cause: unknown) {
    const unknown = uncertain === 0 ? '' : `, and it is not known of the next ${uncertain}`
    super(
      `The first ${done.count} entries are enqueued${unknown}; then: ${messageOf(cause)}`,
      uncertain === 0
        ? 'Remove the cause, then continue with the same stream and the option skip: error.count.'
        : 'Give the entries keys; then start again from the beginning, and none is enqueued twice.',
      { ...done, uncertain },
    )
    this.count = done.count
    this.cause = cause
  }
}

/** The attempt exceeded `timeout`. */
export class AttemptTimeout extends PawlError {
  readonly code = 'E_ATTEMPT_TIMEOUT'
  constructor(jobId: string, timeoutMs: number) {
    super(
      `The attempt at job ${jobId} took longer than its timeout of ${span(timeoutMs)}`,
      'Stop; it is recorded as a failure. If it needs more time, raise `timeout` in defineJob.',
      { jobId, timeoutMs },
    )
  }
}

/** The handler exceeded `stallTimeout`. */
export class AttemptStalled extends PawlError {
  readonly code = 'E_ATTEMPT_STALLED'
  constructor(jobId: string, stallTimeoutMs: number) {
    super(
      `The handler of job ${jobId} showed no activity for ${span(stallTimeoutMs)} (stallTimeout)`,
      'Stop; it is recorded as a failure. Call progress, count, step or commit more often.',
      { jobId, stallTimeoutMs },
    )
  }
}

/** The job succeeded, but its handler returned a value that cannot be stored. */
export class ResultNotStored extends PawlError {
  readonly code = 'E_RESULT_NOT_STORED'
  constructor(jobId: string, path: string, why: string) {
    super(
      `Job ${jobId} succeeded, but its result is not stored: the value at ${path} ${why}`,
      'The work is done and is not repeated. Return plain data from the handler.',
      { jobId, path, why },
    )
  }
}

/** A stored payload is not a value, for example because of an unknown tag. */
export class PayloadUnreadable extends PawlError {
  readonly code = 'E_PAYLOAD_UNREADABLE'
  constructor(jobId: string, what: 'result' | 'progress', why: string) {
    super(
      `The ${what} of job ${jobId} cannot be read: ${why}`,
      'Run a release of Pawl that knows its form, or correct the stored text.',
      { jobId, what, why },
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

/** The schema of a signal rejected its payload. */
export class SignalInvalid extends PawlError {
  readonly code = 'E_SIGNAL_INVALID'
  constructor(signal: string, why: string) {
    super(
      `The payload of signal "${signal}" is invalid: ${why}`,
      'Send a payload that the schema of the signal accepts.',
      { signal, why },
    )
  }
}

/**
 * The attempt has ended because the job sleeps, or waits for a signal or for other jobs. It unwinds
 * the handler, which starts from the top when the wait is over. A handler that catches it must end
 * soon.
 */
export class Suspended extends PawlError {
  readonly code = 'E_SUSPENDED'
  constructor(jobId: string, what: 'sleep' | 'signal' | 'children', name: string) {
    const others = what === 'signal' ? `the signal "${name}"` : `its children "${name}"`
    const words = what === 'sleep' ? `sleeps: "${name}"` : `waits for ${others}`
    super(
      `Job ${jobId} ${words}`,
      'Let the error pass: the handler is started again when the wait is over.',
      { jobId, what, name },
    )
  }
}

/** `close` was called: this Pawl can start no more workers. */
export class PawlClosed extends PawlError {
  readonly code = 'E_PAWL_CLOSED'
  constructor(call: string) {
    super(`${call}() was called after close()`, 'Open Pawl again with createPawl.', { call })
  }
}

/** A handler ignored its abort signal, and `onStuck` is 'exit'. */
export class WorkerStuck extends PawlError {
  readonly code = 'E_WORKER_STUCK'
  constructor(workerId: string, jobId: string, forMs: number) {
    super(
      `Worker ${workerId} has stopped: the handler of job ${jobId} was still running ` +
        `${span(forMs)} after its signal was aborted`,
      'Restart the process, and make the handler stop when its signal is aborted.',
      { workerId, jobId, forMs },
    )
  }
}

/** The schema of the job type rejected an input. */
export class InputInvalid extends PawlError {
  readonly code = 'E_INPUT_INVALID'
  constructor(type: string, why: string) {
    super(
      `The input of a job of type "${type}" is invalid: ${why}`,
      `Change the input to fit the schema of "${type}". Nothing was enqueued.`,
      { type, why },
    )
  }
}

/** A limit or a throttle of the job type has no key, number or units for an input. */
export class LimitKeyInvalid extends PawlError {
  readonly code = 'E_LIMIT_KEY_INVALID'
  constructor(type: string, limit: string, why: string) {
    super(
      `The limit "${limit}" of job type "${type}" cannot be applied to an input: ${why}`,
      `Change the functions of "${limit}", or the input. Nothing was enqueued.`,
      { type, limit, why },
    )
  }
}

/** No process has declared a limit of this name. Nothing was changed. */
export class LimitUnknown extends PawlError {
  readonly code = 'E_LIMIT_UNKNOWN'
  constructor(limit: string) {
    super(
      `There is no limit ${limit}`,
      'List the limits of the store with pawl.limits.list(), and check the name.',
      { limit },
    )
  }
}

/**
 * Thrown by `unwrap` for an invoked job that has not succeeded. It is not retried, because every
 * attempt gets the same outcome.
 */
export class ChildFailed extends Terminal {
  readonly code = 'E_CHILD_FAILED'
  readonly hint: string
  /** The outcome of the invoked job. */
  readonly outcome: Exclude<ChildOutcome, { kind: 'succeeded' }>
  constructor(outcome: Exclude<ChildOutcome, { kind: 'succeeded' }>) {
    const { kind, jobId, reason } = outcome
    const why = (kind === 'failed' ? outcome.error?.message : undefined) ?? reason
    super(
      `The invoked job ${jobId} ${kind === 'failed' ? 'failed' : 'was cancelled'}${ofText(why)}`,
    )
    this.name = 'ChildFailed'
    this.outcome = outcome
    this.hint = `See why: pawl job show ${jobId}. To go on without it, look at the outcome's kind.`
  }
}

function ofText(why: string | null | undefined): string {
  return why == null ? '' : `: ${why}`
}

/**
 * The job runs although a job that it comes after has not come out as needed: it was forced, or not
 * made by a flow. It is parked.
 */
export class DependencyUnmet extends PawlError {
  readonly code = 'E_DEPENDENCY_UNMET'
  constructor(jobId: string, name: string, dependency?: string) {
    const what = dependency === undefined ? 'it has no such dependency' : `job ${dependency}`
    super(
      `Job ${jobId} comes after "${name}", which is not there: ${what}`,
      'Make the job with pawl.flow, or remove the cause in the other job and redrive both.',
      { jobId, name, ...(dependency !== undefined && { dependency }) },
    )
  }
}

/** The job type has `after`, so only a flow can make its jobs. Nothing was enqueued. */
export class AfterMissing extends PawlError {
  readonly code = 'E_AFTER_MISSING'
  constructor(type: string, names: readonly string[]) {
    super(
      `A job of type "${type}" comes after other jobs (${names.join(', ')}) and cannot be ` +
        'enqueued alone',
      'Make it together with them: pawl.flow((f) => f.add(…, { after: { … } })).',
      { type, after: [...names] },
    )
  }
}

/** The job did not end within the `timeout` of `result`. */
export class ResultTimeout extends PawlError {
  readonly code = 'E_RESULT_TIMEOUT'
  constructor(jobId: string, timeoutMs: number) {
    super(
      `Job ${jobId} has not ended within ${span(timeoutMs)}`,
      `The job goes on. Wait again, or see why it has not ended: pawl job show ${jobId}.`,
      { jobId, timeoutMs },
    )
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
    super(
      `Job ${jobId} has not ended: ${command} does not apply`,
      `Wait until it has ended, or end it: pawl job cancel ${jobId} --reason "…".`,
      { jobId, command },
    )
  }
}

/** The job is running, and the command is for jobs that are not. */
export class JobRunning extends PawlError {
  readonly code = 'E_JOB_RUNNING'
  constructor(jobId: string, command: string, stalled: boolean) {
    super(
      `Job ${jobId} is running: ${command} does not apply`,
      stalled
        ? `Its worker does not renew the lease: pawl job approve ${jobId} --reason "…".`
        : `Wait until it has ended, or cancel it: pawl job cancel ${jobId} --reason "…".`,
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
    super(
      `There is no effect ${brief(key)}`,
      'List the effects of its job: pawl effect list --job ID.',
      {
        key,
      },
    )
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

/** The function for the key of `rateLimit`, `debounce` or `singleton` threw, or returned no key. */
export class KeyFunctionFailed extends PawlError {
  readonly code = 'E_KEY_FUNCTION_FAILED'
  constructor(type: string, option: string, why: string, cause?: unknown) {
    super(
      `The function for the key of ${option} of job type "${type}" ${brief(why)}`,
      `Nothing was written. Correct \`${option}.key\`: it gets the checked input.`,
      { type, option, why: brief(why) },
    )
    if (cause !== undefined) this.cause = cause
  }
}

/** A handler or a sender used a signal that the job type does not declare. */
export class SignalUndeclared extends PawlError {
  readonly code = 'E_SIGNAL_UNDECLARED'
  constructor(type: string, signal: string, declared: readonly string[]) {
    const list =
      declared.length === 0 ? 'It has no signals.' : `It declares: ${declared.join(', ')}.`
    super(
      `Job type "${type}" does not declare the signal "${signal}"`,
      `${list} Add the signal to \`signals\` of defineJob, or correct its name.`,
      { type, signal, declared: [...declared] },
    )
  }
}

/** An approval or a rejection of a job that does not wait for one. */
export class JobNotAsking extends PawlError {
  readonly code = 'E_JOB_NOT_ASKING'
  constructor(jobId: string) {
    super(
      `Job ${jobId} does not wait for an approval`,
      `Another operator may have decided. See what it waits for: pawl job explain ${jobId}.`,
      { jobId },
    )
  }
}

/** A token of a signal that was not made with a secret of this process, or was changed. */
export class TokenInvalid extends PawlError {
  readonly code = 'E_TOKEN_INVALID'
  constructor() {
    super(
      'The token is not valid',
      'Use the whole address as it was sent. If it is whole, ask for a new one.',
    )
  }
}

/** A token of a signal whose time has passed. */
export class TokenExpired extends PawlError {
  readonly code = 'E_TOKEN_EXPIRED'
  constructor(expiredAt: number) {
    super('The token has expired', 'Ask for a new one, or answer with `pawl signal send`.', {
      expiredAt,
    })
  }
}

/** A token of a signal that has sent another payload before. */
export class TokenUsed extends PawlError {
  readonly code = 'E_TOKEN_USED'
  constructor() {
    super(
      'The token was used before, with another answer',
      'The first answer counts. Ask for a new token to send another signal.',
    )
  }
}

/** Tokens of signals need a secret. */
export class TokensOff extends PawlError {
  readonly code = 'E_TOKENS_OFF'
  constructor() {
    super(
      'Tokens of signals are off, because this process has no secret for them',
      'Set `signalTokens` of createPawl, or PAWL_SIGNAL_SECRET for the program `pawl`.',
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
      `The delivery of ${key} took longer than ${span(timeoutMs)}`,
      'Stop; it is retried. If the effect needs more time, raise its `timeout`.',
      { key, timeoutMs },
    )
  }
}

/** The name of a store has an unknown form. */
export class StoreNameInvalid extends PawlError {
  readonly code = 'E_STORE_NAME_INVALID'
  constructor(name: string) {
    super(
      `"${brief(withoutSecrets(name))}" is not the name of a store`,
      "Use 'sqlite:./jobs.db', 'sqlite::memory:' or 'postgres://…'.",
      { name: withoutSecrets(name) },
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

/** A job type, run, queue or machine of this name does not exist. */
export class NameUnknown extends PawlError {
  readonly code = 'E_NAME_UNKNOWN'
  constructor(what: string, name: string, known: readonly string[]) {
    const list = known.length > 0 ? `Known names: ${known.join(', ')}.` : 'There are none yet.'
    super(`There is no ${what} "${name}"`, list, { what, name, known })
  }
}
