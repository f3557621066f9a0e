/**
 * Tokens of signals. With a token, one signal can be sent to one job, without other credentials.
 *
 *   pawls_<body>.<signature>
 *   body       base64url of the JSON array [version, job, signal, use, expires, person]
 *   signature  base64url of HMAC-SHA-256 over `pawl signal token\n<body>`
 *
 * `use` numbers the tokens of a signal in a job. It is the key of the signal that the token sends,
 * so the store accepts a token once, also if two requests arrive at the same moment. A token is not
 * stored. The first secret signs, and all secrets are accepted: put a new secret first, and remove
 * the old one when its last token has expired.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { uuid } from '../core/checks.ts'
import { type Duration, toMs } from '../core/durations.ts'
import { CommandInvalid } from '../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import { isPerson } from './approvals.ts'
import { TokenExpired, TokenInvalid, TokensOff } from './errors.ts'
import type { SignalTokenOptions } from './token-options.ts'

/** The options of `token`. */
export interface TokenOptions {
  /**
   * How long the token can be used.
   * @defaultValue `'7d'`
   */
  readonly expires?: Duration
  /**
   * The person for whom the token is made. The ledger names this person as the sender.
   * @defaultValue none: the sender is a client
   */
  readonly to?: string
}

/** A token of a signal. Do not log it: every reader could use it. */
export interface SignalToken {
  readonly token: string
  /** The address to mail; `undefined` without the option `url` of `signalTokens`. */
  readonly url: string | undefined
  readonly expiresAt: Date
}

/** What a token allows. */
export interface TokenGrant {
  readonly jobId: string
  readonly signal: string
  readonly use: number
  readonly expiresAt: number
  readonly to: string | undefined
}

const VERSION = 1
const PREFIX = 'pawls_'
const FORM = /^pawls_([\w-]{20,3000})\.([\w-]{43})$/
/** A segment of a path in a request is not longer. */
const TOKEN_MAX = 2000
const EXPIRES = '7d'

const TOKEN: FieldChecks<TokenOptions> = {
  expires: unchecked,
  to: (value) => (isPerson(value) ? undefined : 'must be a name of at most 255 characters'),
}

/** Makes and reads tokens. Without options both throw `TokensOff`. @internal */
export class SignalTokens {
  readonly #secrets: readonly string[]
  readonly #url: string | undefined

  constructor(options: SignalTokenOptions | undefined) {
    this.#secrets = options === undefined ? [] : [options.secret].flat()
    this.#url = options?.url?.replace(/\/+$/, '')
  }

  /** The n-th token of a signal in a job: the same use in every attempt. */
  issue(
    { jobId, signal, use }: Pick<TokenGrant, 'jobId' | 'signal' | 'use'>,
    options: TokenOptions,
    now: number,
  ): SignalToken {
    checkFields(options, TOKEN, { what: 'options' })
    const [secret] = this.#secrets
    if (secret === undefined) throw new TokensOff()
    const expiresAt = now + toMs(options.expires ?? EXPIRES, 'expires')
    const fields = [VERSION, jobId, signal, use, expiresAt, options.to ?? null]
    const body = Buffer.from(JSON.stringify(fields)).toString('base64url')
    const token = `${PREFIX}${body}.${signatureOf(body, secret)}`
    if (token.length > TOKEN_MAX) {
      throw new CommandInvalid('to', 'must be shorter: an address holds at most 2000 characters')
    }
    const url = this.#url === undefined ? undefined : `${this.#url}/api/v1/signals/${token}`
    return { token, url, expiresAt: new Date(expiresAt) }
  }

  /** Throws `TokenInvalid` or `TokenExpired`. The signature is checked before anything is read. */
  read(token: string, now: number): TokenGrant {
    if (this.#secrets.length === 0) throw new TokensOff()
    const [, body = '', signature = ''] = FORM.exec(token) ?? []
    const isSigned = this.#secrets.some((secret) => isSame(signatureOf(body, secret), signature))
    if (body === '' || !isSigned) throw new TokenInvalid()
    const grant = grantIn(body)
    if (grant.expiresAt <= now) throw new TokenExpired(grant.expiresAt)
    return grant
  }
}

function grantIn(body: string): TokenGrant {
  const [version, jobId, signal, use, expiresAt, to] = JSON.parse(
    Buffer.from(body, 'base64url').toString(),
  )
  // A secret may sign other things as well, or tokens of a later release.
  if (version !== VERSION || uuid(jobId) !== undefined) throw new TokenInvalid()
  return { jobId, signal, use, expiresAt, to: to ?? undefined }
}

/** The key of the signal that a token sends. */
export function keyOfUse({ use }: Pick<TokenGrant, 'use'>): string {
  return `token/${use}`
}

function signatureOf(body: string, secret: string): string {
  return createHmac('sha256', secret).update(`pawl signal token\n${body}`).digest('base64url')
}

function isSame(own: string, given: string): boolean {
  const [one, other] = [Buffer.from(own), Buffer.from(given)]
  return one.length === other.length && timingSafeEqual(one, other)
}
