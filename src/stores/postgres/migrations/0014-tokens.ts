/**
 * Tokens of the HTTP API; see `../../contract/tokens.ts`. Only the hash of a token is stored. A row
 * is never deleted and only its end may be written, once: operators must stay identifiable.
 */
const SQL = `
CREATE TABLE @schema.tokens (
  id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL,
  roles text NOT NULL,
  hash text NOT NULL,
  created_at bigint NOT NULL,
  created_by text NOT NULL,
  expires_at bigint,
  revoked_at bigint,
  revoked_by text
);

CREATE TRIGGER tokens_are_only_revoked
  BEFORE UPDATE OF id, name, roles, hash, created_at, created_by, expires_at ON @schema.tokens
  FOR EACH ROW EXECUTE FUNCTION @schema.refuse('tokens are only revoked');

CREATE TRIGGER tokens_are_revoked_once BEFORE UPDATE ON @schema.tokens
  FOR EACH ROW WHEN (OLD.revoked_at IS NOT NULL)
  EXECUTE FUNCTION @schema.refuse('tokens are revoked once');

CREATE TRIGGER tokens_are_never_deleted BEFORE DELETE ON @schema.tokens
  FOR EACH ROW EXECUTE FUNCTION @schema.refuse('tokens are never deleted');

CREATE TRIGGER tokens_are_never_truncated BEFORE TRUNCATE ON @schema.tokens
  EXECUTE FUNCTION @schema.refuse('tokens are never deleted');
`

/** The statements, for a schema whose name is quoted already. */
export const sql = (schema: string): string => SQL.replaceAll('@schema', () => schema)
