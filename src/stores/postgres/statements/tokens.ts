/** Tokens of the HTTP API on PostgreSQL. */
import type { TokenRow } from '../../verbs/token-tables.ts'
import { statement } from '../connect.ts'
import type { At } from './at.ts'

const INSERT = statement(
  (s) => `
  INSERT INTO ${s}.tokens (id, name, roles, hash, created_at, created_by, expires_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING RETURNING id`,
)
const SELECT_ONE = statement((s) => `SELECT * FROM ${s}.tokens WHERE id = $1`)
const SELECT_ALL = statement(
  (s) => `SELECT * FROM ${s}.tokens ORDER BY created_at DESC, id LIMIT $1`,
)
const REVOKE = statement(
  (s) => `
  UPDATE ${s}.tokens SET revoked_at = $1, revoked_by = $2
  WHERE id = $3 AND revoked_at IS NULL RETURNING id`,
)

export const TOKENS = {
  async insertToken({ session }: At, row: TokenRow) {
    const { id, name, roles, hash, created_at, created_by, expires_at } = row
    const values = [id, name, roles, hash, created_at, created_by, expires_at]
    return (await session.query(INSERT, values)).length > 0
  },
  async tokenRow({ session }: At, id: string) {
    return (await session.query<TokenRow>(SELECT_ONE, [id]))[0]
  },
  tokenRows: ({ session }: At, limit: number) => session.query<TokenRow>(SELECT_ALL, [limit]),
  async endToken({ session, now }: At, id: string, by: string) {
    return (await session.query(REVOKE, [now, by, id])).length > 0
  },
}
