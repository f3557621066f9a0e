/** Tokens of the HTTP API on SQLite. */
import type { TokenRow } from '../../verbs/token-tables.ts'
import type { At } from './at.ts'

const INSERT = `
  INSERT INTO pawl_tokens (id, name, roles, hash, created_at, created_by, expires_at)
  VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`

const SELECT_ALL = 'SELECT * FROM pawl_tokens ORDER BY created_at DESC, id LIMIT ?'

const REVOKE = `
  UPDATE pawl_tokens SET revoked_at = ?, revoked_by = ? WHERE id = ? AND revoked_at IS NULL`

export const TOKENS = {
  insertToken({ connection }: At, row: TokenRow) {
    const { id, name, roles, hash, created_at, created_by, expires_at } = row
    return connection.run(INSERT, id, name, roles, hash, created_at, created_by, expires_at) > 0
  },
  tokenRow: ({ connection }: At, id: string) =>
    connection.get<TokenRow>('SELECT * FROM pawl_tokens WHERE id = ?', id),
  tokenRows: ({ connection }: At, limit: number) => connection.all<TokenRow>(SELECT_ALL, limit),
  endToken: ({ connection, now }: At, id: string, by: string) =>
    connection.run(REVOKE, now, by, id) > 0,
}
