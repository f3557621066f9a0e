/** Tokens of the HTTP API, behind the contract of `../contract/tokens.ts`. */
import { NAME_MAX, text } from '../../core/checks.ts'
import { CommandInvalid } from '../../core/errors.ts'
import { checkLimit } from '../contract/requests.ts'
import {
  type AccessRole,
  checkToken,
  type NewToken,
  type StoredToken,
  type TokenInfo,
  type TokenTables,
} from '../contract/tokens.ts'
import type { Tx, Verb } from './operations.ts'
import type { TableAccess } from './run-tables.ts'

/** A row of `tokens`, as both databases return it. */
export interface TokenRow {
  readonly id: string
  readonly name: string
  readonly roles: string
  readonly hash: string
  readonly created_at: number
  readonly created_by: string
  readonly expires_at: number | null
  readonly revoked_at: number | null
  readonly revoked_by: string | null
}

/** The operations of these verbs. */
export interface TokenOperations {
  /** Inserts a row; returns false if there is one with this id. */
  insertToken(row: TokenRow): boolean
  tokenRow(id: string): TokenRow | undefined
  /** Rows, the newest first. */
  tokenRows(limit: number): TokenRow[]
  /** Writes the end of a token that has none; returns false if it has one. */
  endToken(id: string, by: string): boolean
}

export class StoredTokens implements TokenTables {
  readonly #access: TableAccess

  constructor(access: TableAccess) {
    this.#access = access
  }

  async add(token: NewToken): Promise<TokenInfo> {
    checkToken(token)
    const row = await this.#access.change('tokens.add', (tx) => add(tx, token))
    if (row === undefined) throw new CommandInvalid('id', 'belongs to another token')
    return infoOf(row)
  }

  find(id: string): Promise<StoredToken | undefined> {
    return this.#access.look(function* (tx) {
      const row = yield* tx.tokenRow(id)
      return row && { ...infoOf(row), hash: row.hash }
    })
  }

  async list(limit: number): Promise<TokenInfo[]> {
    checkLimit(limit)
    return this.#access.look(function* (tx) {
      return (yield* tx.tokenRows(limit)).map(infoOf)
    })
  }

  async revoke(id: string, by: string): Promise<'revoked' | 'same' | undefined> {
    const why = text(by, NAME_MAX)
    if (why !== undefined) throw new CommandInvalid('by', why)
    return this.#access.change('tokens.revoke', (tx) => revoke(tx, id, by))
  }
}

/** After a lost reply the row is there already, with the same hash. */
function* add(tx: Tx, token: NewToken): Verb<TokenRow | undefined> {
  const { id, name, roles, hash, createdBy, expiresAt = null } = token
  const row: TokenRow = {
    id,
    name,
    roles: roles.join(' '),
    hash,
    created_at: tx.now,
    created_by: createdBy,
    expires_at: expiresAt,
    revoked_at: null,
    revoked_by: null,
  }
  if (yield* tx.insertToken(row)) return row
  const there = yield* tx.tokenRow(id)
  return there?.hash === hash ? there : undefined
}

function* revoke(tx: Tx, id: string, by: string): Verb<'revoked' | 'same' | undefined> {
  if (yield* tx.endToken(id, by)) return 'revoked'
  return (yield* tx.tokenRow(id)) === undefined ? undefined : 'same'
}

function infoOf(row: TokenRow): TokenInfo {
  const { id, name, expires_at: expiresAt, revoked_at: revokedAt, revoked_by: revokedBy } = row
  return {
    id,
    name,
    roles: row.roles.split(' ') as AccessRole[],
    createdAt: row.created_at,
    createdBy: row.created_by,
    ...(expiresAt !== null && { expiresAt }),
    ...(revokedAt !== null && { revokedAt }),
    ...(revokedBy !== null && { revokedBy }),
  }
}
