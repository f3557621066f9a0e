/**
 * Makes and verifies tokens: `pawl_<id>_<secret>`, where the id is 12 random hexadecimal digits and
 * the secret 32 random bytes in base64url. The store has the SHA-256 of the whole text.
 *
 * A verified token is remembered for five seconds, so that most requests need no query. A revoked
 * token is therefore refused after five seconds at the latest.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import type { Pawl } from '../engine/pawl.ts'
import type { Store } from '../stores/contract/store.ts'
import type { AccessRole, StoredToken, TokenInfo } from '../stores/contract/tokens.ts'
import type { Identity } from './access.ts'

const FORM = /^pawl_([0-9a-f]{12})_[\w-]{43}$/
const REMEMBERED_MS = 5000
const REMEMBERED_MAX = 1000

/** A new token: its secret is shown once and not stored. */
export interface CreatedToken extends TokenInfo {
  readonly token: string
}

/** What a token is made of. */
export interface TokenRequest {
  readonly name: string
  readonly roles: readonly AccessRole[]
  readonly createdBy: string
  readonly expiresAt?: number
}

/** Makes a token and stores its hash. */
export async function createToken(
  { store }: Pick<Pawl, 'store'>,
  request: TokenRequest,
): Promise<CreatedToken> {
  checkFields(request, REQUEST, { what: 'request' })
  const id = randomBytes(6).toString('hex')
  const token = `pawl_${id}_${randomBytes(32).toString('base64url')}`
  const info = await store.tokens.add({ id, hash: hashOf(token).toString('hex'), ...request })
  return { ...info, token }
}

// The store checks the values.
const REQUEST: FieldChecks<TokenRequest> = {
  name: unchecked,
  roles: unchecked,
  createdBy: unchecked,
  expiresAt: unchecked,
}

interface Remembered {
  readonly identity: Identity
  readonly until: number
}

/** Verifies the tokens of requests. */
export class Tokens {
  readonly #store: Store
  readonly #remembered = new Map<string, Remembered>()

  constructor(store: Store) {
    this.#store = store
  }

  /** The caller, if the token was verified a moment ago. */
  remembered(token: string): Identity | undefined {
    const known = this.#remembered.get(keyOf(token))
    return known !== undefined && known.until > this.#store.now() ? known.identity : undefined
  }

  /** The caller; undefined if the token is unknown, revoked or expired. */
  async identify(token: string): Promise<Identity | undefined> {
    const id = FORM.exec(token)?.[1]
    const stored = id === undefined ? undefined : await this.#store.tokens.find(id)
    const now = this.#store.now()
    if (stored === undefined || !isSame(token, stored) || tokenStateOf(stored, now) !== 'valid')
      return undefined
    const identity = { name: stored.name, roles: stored.roles }
    if (this.#remembered.size >= REMEMBERED_MAX) this.#remembered.clear()
    const until = Math.min(now + REMEMBERED_MS, stored.expiresAt ?? Number.MAX_SAFE_INTEGER)
    this.#remembered.set(keyOf(token), { identity, until })
    return identity
  }
}

function isSame(token: string, { hash }: StoredToken): boolean {
  const stored = Buffer.from(hash, 'hex')
  const own = hashOf(token)
  return stored.length === own.length && timingSafeEqual(stored, own)
}

/** Whether a token can be used, and otherwise why not. */
export function tokenStateOf(
  { expiresAt, revokedAt }: Pick<TokenInfo, 'expiresAt' | 'revokedAt'>,
  now: number,
): 'valid' | 'expired' | 'revoked' {
  if (revokedAt !== undefined) return 'revoked'
  return expiresAt !== undefined && expiresAt <= now ? 'expired' : 'valid'
}

/** Tokens themselves are not kept in memory. */
function keyOf(token: string): string {
  return hashOf(token).toString('base64')
}

function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
