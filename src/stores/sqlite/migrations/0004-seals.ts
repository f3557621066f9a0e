/**
 * Seals over ranges of the ledger, and what retention took out of each; see `../../seals.ts`. Like
 * facts, neither is ever changed or deleted.
 */
export const sql = `
CREATE TABLE pawl_seals (
  number INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL CHECK (last >= first),
  facts INTEGER NOT NULL CHECK (facts >= 1),
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  sum TEXT NOT NULL,
  chain TEXT NOT NULL
) STRICT;

CREATE TABLE pawl_seal_removals (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  seal INTEGER NOT NULL,
  pruned INTEGER NOT NULL,
  facts INTEGER NOT NULL,
  sum TEXT NOT NULL,
  left_out TEXT
) STRICT;

CREATE INDEX pawl_seal_removals_seal ON pawl_seal_removals (seal);
CREATE INDEX pawl_seal_removals_pruned ON pawl_seal_removals (pruned);

CREATE TRIGGER pawl_seals_are_never_updated BEFORE UPDATE ON pawl_seals
BEGIN SELECT RAISE(ABORT, 'P8: seals are never changed'); END;

CREATE TRIGGER pawl_seals_are_never_deleted BEFORE DELETE ON pawl_seals
BEGIN SELECT RAISE(ABORT, 'P8: seals are never deleted'); END;

CREATE TRIGGER pawl_seal_removals_are_never_updated BEFORE UPDATE ON pawl_seal_removals
BEGIN SELECT RAISE(ABORT, 'P8: what retention took from seals is never changed'); END;

CREATE TRIGGER pawl_seal_removals_are_never_deleted BEFORE DELETE ON pawl_seal_removals
BEGIN SELECT RAISE(ABORT, 'P8: what retention took from seals is never deleted'); END;
`
