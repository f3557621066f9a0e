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

/** Turns whatever a handler threw into what the decider may know of it. */
export function classify(thrown: unknown): Failure {
  const message = messageOf(thrown)
  if (thrown instanceof RetryAfter) {
    const retryAfterMs = Math.round(Math.min(Math.max(thrown.delayMs, 0), DELAY_MAX_MS))
    // NaN survives both bounds; a delay that is no number falls back to the policy's own.
    if (Number.isNaN(retryAfterMs)) return { class: 'retryable', kind: 'transient', message }
    return { class: 'retryable', kind: 'transient', message, retryAfterMs }
  }
  if (thrown instanceof Retryable || thrown instanceof Terminal) {
    return { class: FAILURE_KINDS[thrown.kind], kind: thrown.kind, message }
  }
  return { class: 'retryable', kind: 'error', message }
}

/** A readable text for anything that can be thrown, well-formed and bounded. */
function messageOf(thrown: unknown): string {
  return toBoundedText(describe(thrown))
}

function describe(thrown: unknown): string {
  try {
    if (thrown instanceof Error) return `${thrown.name}: ${thrown.message}`
    return String(thrown)
  } catch {
    // A hostile toString or getter must not take the worker down with it.
    return 'an error that cannot be described'
  }
}

/** Cuts a text to the bound, and mends what could not be stored: lone surrogates and NUL. */
export function toBoundedText(text: string, max = MESSAGE_MAX): string {
  const wellFormed = text.replaceAll(/\p{Surrogate}|\0/gu, '\uFFFD')
  if (wellFormed.length <= max) return wellFormed
  const cut = wellFormed.slice(0, max)
  return `${cut.replace(/\p{Surrogate}$/u, '')}…`
}
