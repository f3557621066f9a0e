/**
 * How errors of handlers are classified. A handler chooses the class by what it throws:
 *
 * - `Retryable`, or any unknown error: the job is retried.
 * - `Terminal`: the job is not retried.
 * - `RetryAfter`: the job is retried after the delay that the error names.
 *
 * The kinds and their classes are the two lists of the job-lifecycle requirements (R2).
 *
 * The decider never sees the error itself, only a `Failure`: a class, a kind and a bounded text.
 * Two payloads that fail in the same way therefore leave the same ledger (rule G10).
 */
import { DELAY_MAX_MS } from './retry.ts'

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
}

/** Longer messages are cut, to keep the rows of the ledger small. */
export const MESSAGE_MAX = 4000

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

/** Thrown by a handler to be retried after a given delay. It spends the failure budget. */
export class RetryAfter extends Error {
  readonly delayMs: number
  constructor(delayMs: number, message = 'asked to be retried later', options?: ErrorOptions) {
    super(message, options)
    this.name = 'RetryAfter'
    this.delayMs = delayMs
  }
}

/** Converts what a handler threw to a `Failure`. Never throws. */
export function classify(thrown: unknown): Failure {
  const message = safely(() => describe(thrown), 'an error that cannot be described')
  const unknown: Failure = { class: 'retryable', kind: 'error', message }
  return safely(() => classOf(thrown, message) ?? unknown, unknown)
}

/** A proxy, getter or `toString` that throws must not stop the worker. */
function safely<T>(ask: () => T, otherwise: T): T {
  try {
    return ask()
  } catch {
    return otherwise
  }
}

function describe(thrown: unknown): string {
  return toBoundedText(
    thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown),
  )
}

function classOf(thrown: unknown, message: string): Failure | undefined {
  if (thrown instanceof Terminal) return failureOf(thrown.kind, 'terminal', message)
  if (thrown instanceof Retryable) return failureOf(thrown.kind, 'transient', message)
  if (!(thrown instanceof RetryAfter)) return undefined
  const asked = failureOf('transient', 'transient', message)
  const { delayMs } = thrown
  // If the delay is not a number, the retry policy chooses it.
  if (typeof delayMs !== 'number' || Number.isNaN(delayMs)) return asked
  return { ...asked, retryAfterMs: Math.round(Math.min(Math.max(delayMs, 0), DELAY_MAX_MS)) }
}

/** Plain JavaScript can pass an unknown kind. The class of the error still counts. */
function failureOf(kind: FailureKind, otherwise: FailureKind, message: string): Failure {
  const known = Object.hasOwn(FAILURE_KINDS, kind) ? kind : otherwise
  return { class: FAILURE_KINDS[known], kind: known, message }
}

/** Cuts a text to the bound and replaces what cannot be stored: lone surrogates and NUL. */
export function toBoundedText(text: string, max = MESSAGE_MAX): string {
  const wellFormed = text.replaceAll(/\p{Surrogate}|\0/gu, '\uFFFD')
  if (wellFormed.length <= max) return wellFormed
  const cut = wellFormed.slice(0, max)
  return `${cut.replace(/\p{Surrogate}$/u, '')}…`
}
