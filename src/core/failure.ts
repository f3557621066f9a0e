/**
 * How errors of handlers are classified. A handler chooses the class by what it throws:
 *
 * - `Retryable`, or any unknown error: the job is retried.
 * - `Terminal`: the job is not retried. `ValueInvalid` is classified in the same way.
 * - `RetryAfter`: the job is retried after the delay that the error names.
 * - `Snooze`: the attempt did not fail. The job runs again after the delay that it names.
 * - `Throttled`: the same, and a throttle of the job is closed for all jobs until then.
 *
 * The kinds and their classes are the two lists of the job-lifecycle requirements (R2).
 *
 * The decider never sees the error itself, only a `Failure`: a class, a kind and a bounded text.
 * Two payloads that fail in the same way therefore leave the same ledger (rule G10).
 */

import { toBoundedText } from './bounded-text.ts'
import { type Duration, msOf, toMs } from './durations.ts'
import { ValueInvalid } from './errors.ts'
import { DELAY_MAX_MS } from './retry.ts'
import {
  describeThrown,
  fingerprintOf,
  type Redact,
  safely,
  type ThrownError,
  textOf,
} from './thrown.ts'

export { MESSAGE_MAX, toBoundedText } from './bounded-text.ts'

/** Whether a retry can help. Unreadable input has a class of its own, because it can be parked. */
export type FailureClass = 'retryable' | 'terminal' | 'invalid_input'

/** The failure kinds of R2, each with its class. */
export const FAILURE_KINDS = {
  error: 'retryable',
  transient: 'retryable',
  timeout: 'retryable',
  overload: 'retryable',
  unavailable: 'retryable',
  invalid_input: 'invalid_input',
  validation: 'terminal',
  deadline: 'terminal',
  configuration: 'terminal',
  limit_exceeded: 'terminal',
  terminal: 'terminal',
} as const satisfies Record<string, FailureClass>

export type FailureKind = keyof typeof FAILURE_KINDS

/** What the decider knows about a failure. */
export interface Failure {
  readonly class: FailureClass
  readonly kind: FailureKind
  readonly message: string
  /** The delay that `RetryAfter` asked for. Lifecycles with a fixed delay ignore it. */
  readonly retryAfterMs?: number
  /** The name and code of the error, and the key by which failures are grouped. */
  readonly name?: string
  readonly code?: string
  readonly fingerprint?: string
  /** What was thrown, with its stack and its causes. */
  readonly thrown?: ThrownError
}

/** Failures that may not occur on a retry. */
export type RetryableKind = Extract<
  FailureKind,
  'transient' | 'timeout' | 'overload' | 'unavailable'
>

/** Failures that would occur again on every retry. */
export type TerminalKind = Exclude<FailureKind, RetryableKind | 'error'>

/** Thrown by a handler if the job may succeed on a retry. */
export class Retryable extends Error {
  readonly kind: RetryableKind
  constructor(message: string, kind: RetryableKind = 'transient', options?: ErrorOptions) {
    super(message, options)
    this.name = 'Retryable'
    this.kind = kind
  }
}

/** Thrown by a handler if no retry can help. */
export class Terminal extends Error {
  readonly kind: TerminalKind
  constructor(message: string, kind: TerminalKind = 'terminal', options?: ErrorOptions) {
    super(message, options)
    this.name = 'Terminal'
    this.kind = kind
  }
}

/**
 * Thrown by a handler to be retried after a given delay, for example `new RetryAfter('30s')`. It
 * spends the failure budget. The delay replaces that of the retry policy, without jitter; it is cut
 * to between 0 and 366 days. If it is no duration, the retry policy chooses the delay, and so it
 * does in lifecycles with a fixed delay.
 */
export class RetryAfter extends Error {
  /** NaN if the delay is no duration. */
  readonly delayMs: number
  constructor(delay: Duration, message = 'asked to be retried later', options?: ErrorOptions) {
    super(message, options)
    this.name = 'RetryAfter'
    this.delayMs = msOf(delay)
  }
}

/**
 * Thrown by `snooze` of the context. The job runs again after the delay. The attempt is not a
 * failure: it spends no retry, and no error is recorded.
 */
export class Snooze extends Error {
  readonly delayMs: number
  /** Throws `DefinitionInvalid` if the delay is no duration of up to 366 days. */
  constructor(delay: Duration) {
    super('The job asked to run again later')
    this.name = 'Snooze'
    this.delayMs = toMs(delay, 'snooze')
  }
}

/**
 * Thrown by a handler whose receiver asked it to wait: `throw throttled('name', { retryAfter })`.
 * The throttle is closed for all jobs until then. The attempt is not a failure.
 */
export class Throttled extends Error {
  readonly throttle: string
  readonly retryAfterMs: number
  /** Throws `DefinitionInvalid` if the delay is no duration of up to 366 days. */
  constructor(throttle: string, retryAfter: Duration) {
    super(`The throttle "${throttle}" is closed for a while`)
    this.name = 'Throttled'
    this.throttle = throttle
    this.retryAfterMs = toMs(retryAfter, 'retryAfter')
  }
}

/** What a failure is described with. */
export interface FailureContext {
  /** The type of the job, by which failures are grouped. */
  readonly type: string
  /** Changes texts before they are stored. */
  readonly redact?: Redact
}

/** Converts what a handler threw to a `Failure`, with its details. Never throws. */
export function failureOf(thrown: unknown, { type, redact }: FailureContext): Failure {
  const details = describeThrown(thrown, redact)
  const { name, code } = details
  const fingerprint = fingerprintOf(type, describeThrown(thrown))
  const failure = classify(thrown, redact)
  return { ...failure, name, ...(code !== undefined && { code }), fingerprint, thrown: details }
}

/**
 * Returns the details of a failure that the engine found itself, such as a time-out. Its stack
 * would name places in Pawl, so it has none.
 */
export function ownFailure(
  error: Error & { readonly code?: string },
  failure: Pick<Failure, 'class' | 'kind'>,
  { type, redact = (text) => text }: FailureContext,
  prefix = '',
): Failure {
  const { name, code } = error
  const fingerprint = fingerprintOf(type, { name, message: '', ...(code && { code }) })
  const message = toBoundedText(redact(`${prefix}${error.message}`))
  return { ...failure, message, name, ...(code !== undefined && { code }), fingerprint }
}

/** Converts what a handler threw to a class, a kind and a message. Never throws. */
export function classify(thrown: unknown, redact: Redact = (text) => text): Failure {
  const message = toBoundedText(redact(textOf(thrown)))
  const unknown: Failure = { class: 'retryable', kind: 'error', message }
  return safely(() => classOf(thrown, message) ?? unknown, unknown)
}

function classOf(thrown: unknown, message: string): Failure | undefined {
  if (thrown instanceof Terminal) return kindOf(thrown.kind, 'terminal', message)
  // The same value would be refused on every retry.
  if (thrown instanceof ValueInvalid) return kindOf('validation', 'validation', message)
  if (thrown instanceof Retryable) return kindOf(thrown.kind, 'transient', message)
  if (!(thrown instanceof RetryAfter)) return undefined
  const asked = kindOf('transient', 'transient', message)
  const { delayMs } = thrown
  // If the delay is not a number, the retry policy chooses it.
  if (typeof delayMs !== 'number' || Number.isNaN(delayMs)) return asked
  return { ...asked, retryAfterMs: Math.round(Math.min(Math.max(delayMs, 0), DELAY_MAX_MS)) }
}

/** Plain JavaScript can pass an unknown kind. The class of the error still counts. */
function kindOf(kind: FailureKind, otherwise: FailureKind, message: string): Failure {
  const known = Object.hasOwn(FAILURE_KINDS, kind) ? kind : otherwise
  return { class: FAILURE_KINDS[known], kind: known, message }
}
