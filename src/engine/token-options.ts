/** The option `signalTokens`, apart from the code that signs, so that `pawl/define` can load it. */
import { listOf } from '../core/checks.ts'
import { CommandInvalid } from '../core/errors.ts'
import { checkFields, type FieldChecks } from '../core/fields.ts'

/** How tokens of signals are signed. */
export interface SignalTokenOptions {
  /**
   * The secret, at least 32 characters; or several, of which the first signs and all are accepted.
   * All processes of a store need the same.
   */
  readonly secret: string | readonly string[]
  /**
   * The address under which people reach the HTTP API, such as `https://jobs.example.com`.
   * @defaultValue none: `token` returns no URL
   */
  readonly url?: string
}

const SECRET_MIN = 32
const SECRETS_MAX = 10
const URL_MAX = 1000

const OPTIONS: FieldChecks<SignalTokenOptions> = {
  secret: (value) =>
    typeof value === 'string' ? secretFault(value) : listOf(value, SECRETS_MAX, secretFault),
  url: urlFault,
}

/** Says nothing about the secret but that it is too short. */
function secretFault(value: string): string | undefined {
  const isLong = typeof value === 'string' && value.length >= SECRET_MIN
  return isLong ? undefined : `must have at least ${SECRET_MIN} characters`
}

function urlFault(value: string): string | undefined {
  const isAddress =
    typeof value === 'string' && value.length <= URL_MAX && /^https?:\/\/[^\s?#]+$/.test(value)
  return isAddress ? undefined : 'must be an address such as https://jobs.example.com'
}

/** Checks the option `signalTokens`; returns what is wrong. */
export function checkTokenOptions(options: SignalTokenOptions): string | undefined {
  try {
    checkFields(options, OPTIONS, { what: 'signalTokens' })
    const isEmpty = options.secret === undefined || options.secret.length === 0
    return isEmpty ? 'must have a secret' : undefined
  } catch (error) {
    if (!(error instanceof CommandInvalid)) throw error
    return `has a wrong field: ${error.message}`
  }
}
