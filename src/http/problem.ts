/** Errors as answers: problem details (RFC 9457) with the stable codes of Pawl. */
import { InvalidTransition, PawlError } from '../core/errors.ts'
import type { Logger } from '../core/ports.ts'
import { withoutSecrets } from '../core/redact.ts'
import { type ErrorClass, errorClassOf } from '../engine/error-classes.ts'
import { LoginsLimited, RequestRefused } from './errors.ts'
import type { Outgoing } from './exchange.ts'
import { type JsonSchema, list, record, text, whole } from './schema.ts'

export const PROBLEM: JsonSchema = record(
  {
    type: text('`urn:pawl:` and the code'),
    title: text('what happened, and why'),
    status: whole(),
    code: text('a stable code; docs/reference/errors.md lists all'),
    hint: text('what to do next'),
  },
  {
    from: text('the state that the job is in, if a transition is not valid'),
    to: text('the state that was asked for'),
    allowed: list(text(), { description: 'the states that can follow' }),
  },
)

const BY_CLASS: Readonly<Record<ErrorClass, number>> = {
  usage: 400,
  'not-found': 404,
  conflict: 409,
  failure: 500,
}

/** Statuses of errors for which the class alone says too little. */
const BY_CODE: Readonly<Record<string, number>> = {
  E_INPUT_INVALID: 422,
  E_LOGIN_REQUIRED: 401,
  E_LOGINS_LIMITED: 429,
  E_QUEUE_FULL: 429,
  E_RATE_LIMITED: 429,
  E_ROLE_MISSING: 403,
  E_ORIGIN_REFUSED: 403,
  E_SERVER_BUSY: 503,
  E_SIGNAL_INVALID: 422,
  E_SIGNAL_UNDECLARED: 422,
  E_TOKEN_EXPIRED: 410,
  E_TOKEN_INVALID: 403,
  E_TOKENS_OFF: 503,
  E_OUTCOME_UNKNOWN: 503,
  E_PAWL_CLOSED: 503,
  E_STORE_BUSY: 503,
  E_STORE_CLOSED: 503,
  E_STORE_FULL: 503,
  E_STORE_UNAVAILABLE: 503,
}

/** The status of an error. */
function statusOf(error: PawlError): number {
  if (error instanceof RequestRefused) return error.status
  return BY_CODE[error.code] ?? BY_CLASS[errorClassOf(error)]
}

/** The answer for an error. Unexpected errors may contain internal data: they go to the log. */
export function problemOf(error: unknown, logger: Logger): Outgoing {
  if (!(error instanceof PawlError)) {
    const cause = error instanceof Error ? (error.stack ?? error.message) : String(error)
    const fields = { event: 'http.failed', error: withoutSecrets(cause) }
    logger.error(fields, 'A request failed unexpectedly')
    const hint = 'Send the request again later. The log of the server says more.'
    return reply(500, { code: 'E_UNEXPECTED', title: 'Internal error', hint })
  }
  const { code, hint } = error
  const status = statusOf(error)
  const moved =
    error instanceof InvalidTransition
      ? { from: error.from, to: error.to, allowed: error.allowed }
      : {}
  const shown = { code, title: withoutSecrets(error.message), hint: withoutSecrets(hint), ...moved }
  return reply(status, shown, headersOf(status, error))
}

function headersOf(status: number, error: PawlError): Record<string, string> {
  if (status === 401) return { 'www-authenticate': 'Bearer realm="pawl"' }
  if (error instanceof LoginsLimited) {
    return { 'retry-after': String(Math.ceil(error.retryAfterMs / 1000)) }
  }
  return status === 429 || status === 503 ? { 'retry-after': '1' } : {}
}

function reply(
  status: number,
  shown: { readonly code: string; readonly title: string; readonly hint: string },
  headers: Readonly<Record<string, string>> = {},
): Outgoing {
  const body = JSON.stringify({ type: `urn:pawl:${shown.code}`, status, ...shown })
  return { status, headers: { 'content-type': 'application/problem+json', ...headers }, body }
}
