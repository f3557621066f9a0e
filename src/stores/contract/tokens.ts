/**
 * The tokens of the HTTP API. A token is a secret that its owner sends with each request. The store
 * has its SHA-256 only, so a copy of the database is of no use to a thief. A token has 256 random
 * bits: guessing is hopeless, and a slow hash would add nothing.
 *
 * A token is never deleted: its name is the operator in the ledger. It ends by its expiry or by
 * `revoke`, which records who asked.
 */
import { listOf, NAME_MAX, name, oneOf, optional, text, time } from '../../core/checks.ts'
import { CommandInvalid } from '../../core/errors.ts'

/**
 * What the owner of a token may do:
 *
 *   read      read everything, except the inputs that claims return
 *   operate   all of `read`, enqueue jobs, and change jobs, effects, queues and runs
 *   work      enqueue jobs, and claim and report them
 *   admin     everything, also repairs of the doctor
 */
export const ACCESS_ROLES = ['read', 'operate', 'work', 'admin'] as const

/** A role of the HTTP API. */
export type AccessRole = (typeof ACCESS_ROLES)[number]

/** A token without its secret. */
export interface TokenInfo {
  readonly id: string
  /** The owner. The ledger records it as the operator. */
  readonly name: string
  readonly roles: readonly AccessRole[]
  readonly createdAt: number
  readonly createdBy: string
  readonly expiresAt?: number
  readonly revokedAt?: number
  readonly revokedBy?: string
}

/** A token as it is stored. */
export interface StoredToken extends TokenInfo {
  /** The SHA-256 of the whole token, in hexadecimal digits. */
  readonly hash: string
}

/** A token to be stored. */
export type NewToken = Pick<
  StoredToken,
  'id' | 'name' | 'roles' | 'hash' | 'createdBy' | 'expiresAt'
>

/** The verbs of tokens. Each is atomic. */
export interface TokenTables {
  /** Stores a token. Throws `CommandInvalid` if a field is not valid or the id is taken. */
  add(token: NewToken): Promise<TokenInfo>
  /** Returns the token with this id, also if it has ended. */
  find(id: string): Promise<StoredToken | undefined>
  /** Returns the last tokens of this number at most, the newest first. */
  list(limit: number): Promise<TokenInfo[]>
  /**
   * Revokes a token. Returns `same` if it was revoked before, and `undefined` if there is none with
   * this id.
   */
  revoke(id: string, by: string): Promise<'revoked' | 'same' | undefined>
}

const HASH = /^[0-9a-f]{64}$/
const ID = /^[0-9a-z]{8,32}$/

/** Throws `CommandInvalid` for the first field of a token that is not valid. */
export function checkToken(token: NewToken): void {
  const { id, roles, hash, createdBy, expiresAt } = token
  const rules: (readonly [string, string | undefined])[] = [
    ['id', ID.test(id) ? undefined : 'must be 8 to 32 digits and small letters'],
    ['name', name(token.name)],
    ['roles', rolesFault(roles)],
    ['hash', HASH.test(hash) ? undefined : 'must be 64 hexadecimal digits'],
    ['createdBy', text(createdBy, NAME_MAX)],
    ['expiresAt', optional(expiresAt, time)],
  ]
  for (const [field, why] of rules) if (why !== undefined) throw new CommandInvalid(field, why)
}

function rolesFault(roles: readonly AccessRole[]): string | undefined {
  if (Array.isArray(roles) && roles.length === 0) return 'must contain a role'
  return listOf(roles, ACCESS_ROLES.length, (role) => oneOf(role, ACCESS_ROLES))
}
