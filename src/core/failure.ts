/**
 * Errors of handlers are classes, not flags. `Retryable` is what any unknown error is taken for;
 * `Terminal` never benefits from a retry; `RetryAfter` names its own delay. The kinds and their
 * classes are document 002's two lists.
 *
 * The decider never sees the error itself, only a `Failure`: a class, a kind and a bounded text. So
 * two payloads that fail alike leave the same ledger (rule G10).
 */
import { DELAY_MAX_MS } from './retry.ts'

/** Whether a retry can help. Input that cannot be read is a class of its own: it may be parked. */
export type FailureClass = 'retryable' | 'terminal' | 'invalid_input'

/** Document 002's failures, by kind. */
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

/** What kind of failure it was. */
export type FailureKind = keyof typeof FAILURE_KINDS

/** What the decider learns of a failure. */
export interface Failure {
  readonly class: FailureClass
  readonly kind: FailureKind
  readonly message: string
  /** Asked for by `RetryAfter`; lifecycles with a fixed delay ignore it. */
  readonly retryAfterMs?: number
}

/** Longer messages are cut: a ledger row is no place for a page of text. */
export const MESSAGE_MAX = 4000

/** The kinds of failure that a retry may cure. */
export type RetryableKind = Extract<
  FailureKind,
  'transient' | 'timeout' | 'overload' | 'unavailable'
>

/** The kinds of failure that no retry cures. */
export type TerminalKind = Exclude<FailureKind, RetryableKind | 'error'>

/** A failure that may succeed on retry. */
export class Retryable extends Error {
  readonly kind: RetryableKind
  constructor(message: string, kind: RetryableKind = 'transient', options?: ErrorOptions) {
    super(message, options)
    this.name = 'Retryable'
    this.kind = kind
  }
}

/** A failure that no retry will cure. */
export class Terminal extends Error {
  readonly kind: TerminalKind
  constructor(message: string, kind: TerminalKind = 'terminal', options?: ErrorOptions) {
    super(message, options)
    this.name = 'Terminal'
    this.kind = kind
  }
}

/** A retryable failure that says when to try again. It spends the failure budget. */
export class RetryAfter extends Error {
  readonly delayMs: number
  constructor(delayMs: number, message = 'asked to be retried later', options?: ErrorOptions) {
    super(message, options)
    this.name = 'RetryAfter'
    this.delayMs = delayMs
  }
}

/** Turns whatever a handler threw into what the decider may know of it. Never throws. */
export function classify(thrown: unknown): Failure {
  const message = safely(() => describe(thrown), 'an error that cannot be described')
  const unknown: Failure = { class: 'retryable', kind: 'error', message }
  return safely(() => classOf(thrown, message) ?? unknown, unknown)
}

/** A hostile proxy, getter or toString must not take the worker down with it. */
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
  // A delay that is no number falls back to the policy's own.
  if (typeof delayMs !== 'number' || Number.isNaN(delayMs)) return asked
  return { ...asked, retryAfterMs: Math.round(Math.min(Math.max(delayMs, 0), DELAY_MAX_MS)) }
}

/** Plain JavaScript can name a kind that does not exist; the class of the error still counts. */
function failureOf(kind: FailureKind, otherwise: FailureKind, message: string): Failure {
  const known = Object.hasOwn(FAILURE_KINDS, kind) ? kind : otherwise
  return { class: FAILURE_KINDS[known], kind: known, message }
}

/** Cuts a text to the bound, and mends what could not be stored: lone surrogates and NUL. */
export function toBoundedText(text: string, max = MESSAGE_MAX): string {
  const wellFormed = text.replaceAll(/\p{Surrogate}|\0/gu, '\uFFFD')
  if (wellFormed.length <= max) return wellFormed
  const cut = wellFormed.slice(0, max)
  return `${cut.replace(/\p{Surrogate}$/u, '')}…`
}
