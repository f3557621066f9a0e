/**
 * Tokens of the HTTP API; see `../../contract/tokens.ts`. Only the hash of a token is stored. A row
 * is never deleted and only its end may be written, once: operators must stay identifiable.
 */
export const sql = `
CREATE TABLE pawl_tokens (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  roles TEXT NOT NULL,
  hash TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  revoked_by TEXT
) STRICT, WITHOUT ROWID;

CREATE TRIGGER pawl_tokens_are_only_revoked BEFORE UPDATE ON pawl_tokens
WHEN OLD.revoked_at IS NOT NULL OR NEW.id <> OLD.id OR NEW.name <> OLD.name
  OR NEW.roles <> OLD.roles OR NEW.hash <> OLD.hash OR NEW.created_at <> OLD.created_at
  OR NEW.created_by <> OLD.created_by OR NEW.expires_at IS NOT OLD.expires_at
BEGIN SELECT RAISE(ABORT, 'tokens are only revoked'); END;

CREATE TRIGGER pawl_tokens_are_never_deleted BEFORE DELETE ON pawl_tokens
BEGIN SELECT RAISE(ABORT, 'tokens are never deleted'); END;
`
