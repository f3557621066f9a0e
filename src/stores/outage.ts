/**
 * Why a database cannot be used, in words: the driver's own message, the SQLSTATE or the code of
 * the platform, the address if the message does not name it, and what a person can do about it.
 */
import { messageOf, PawlError } from '../core/errors.ts'
import { withoutSecrets } from '../core/redact.ts'

/** An outage of the database, as listeners receive it. */
export type Trouble =
  | { readonly kind: 'away'; readonly forMs: number; readonly error: PawlError }
  | { readonly kind: 'back'; readonly forMs: number }

/** What is known of an outage. */
export interface Outage {
  readonly reason: string
  /** A SQLSTATE or a code of the platform such as ECONNREFUSED; empty if there is none. */
  readonly code: string
  readonly advice: string
}

const CAUSES_MAX = 10

/**
 * The code of an error: of PostgreSQL or of the platform; empty if it has none. Libraries may have
 * wrapped the error of their driver.
 */
export function codeOf(error: unknown, depth = 0): string {
  if (typeof error !== 'object' || error === null || depth > CAUSES_MAX) return ''
  const { code, cause } = error as { code?: unknown; cause?: unknown }
  return typeof code === 'string' ? code : codeOf(cause, depth + 1)
}

/** Whether a code is one of PostgreSQL: five digits or capital letters, with a digit first. */
export function isSqlState(code: string): boolean {
  return /^[0-9A-Z]{5}$/.test(code) && /\d/.test(code)
}

const ADVICE: readonly (readonly [RegExp, string])[] = [
  [/^ECONNREFUSED$/, 'Nothing listens there: check that the server runs, and its address.'],
  [/^(ENOTFOUND|EAI_AGAIN)$/, 'Check the name of the host.'],
  [/^53300$/, 'Raise max_connections of the server, or give the stores fewer connections.'],
  [
    /^25006$/,
    'The server is read-only, as a standby is. Name all hosts and target_session_attrs=read-write.',
  ],
  [/^57P/, 'The server is starting, stopping, or has ended the session.'],
]

/** Describes what made the database unusable. */
export function outageOf(cause: unknown): Outage {
  if (cause instanceof PawlError && typeof cause.details.reason === 'string') {
    const { reason, cause: code } = cause.details
    return describe(reason, typeof code === 'string' ? code : '')
  }
  const code = cause instanceof PawlError ? cause.code : codeOf(cause)
  const address = addressOf(cause)
  const message = withoutSecrets(wordsOf(cause))
  const named = address === '' || message.includes(address) ? message : `${address}: ${message}`
  const state = isSqlState(code) ? ` (SQLSTATE ${code})` : ''
  // A code of Pawl is part of `details`: a message has one code, that of the error itself.
  const isForeign = !(cause instanceof PawlError) && state === '' && code !== ''
  const missing = isForeign && !message.includes(code) ? ` (${code})` : ''
  return describe(`${named}${state}${missing}`, code)
}

function describe(reason: string, code: string): Outage {
  const [, advice] = ADVICE.find(([pattern]) => pattern.test(code)) ?? []
  return { reason, code, advice: advice ?? 'Check that it runs and lets this process in.' }
}

/** An attempt at several addresses has an empty message and an error for each of them. */
function wordsOf(error: unknown): string {
  const { errors } = (error ?? {}) as { errors?: unknown }
  const message = messageOf(error)
  if (message !== '' || !Array.isArray(errors)) return message
  return errors.map(messageOf).join('; ')
}

/** Where the error happened, if `noteAddress` was called for it. */
const addresses = new WeakMap<object, string>()

function addressOf(error: unknown): string {
  return typeof error === 'object' && error !== null ? (addresses.get(error) ?? '') : ''
}

/** Notes at which address (`host:port`) an error happened. */
export function noteAddress(error: unknown, address: string): void {
  if (typeof error !== 'object' || error === null || addresses.has(error)) return
  addresses.set(error, address)
}
