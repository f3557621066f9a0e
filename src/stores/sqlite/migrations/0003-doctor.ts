/**
 * The tables of the doctor. `pawl_quarantined` keeps rows that contradict others and were therefore
 * taken out of their tables, whole, with who did it and why: nothing is thrown away. `pawl_duties`
 * says who does what only one process should do at a time, and how far it is.
 *
 * `pawl_ledger.creates` is the id of the job that a fact creates, with a checksum. Facts refer to
 * their job by the number of its row; with this the ledger alone says which job that was, should
 * the row be lost.
 */
export const sql = `
ALTER TABLE pawl_ledger ADD COLUMN creates TEXT;

CREATE TABLE pawl_quarantined (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  origin TEXT NOT NULL,
  job TEXT,
  content TEXT NOT NULL,
  why TEXT NOT NULL,
  operator TEXT NOT NULL,
  note TEXT NOT NULL
) STRICT;

CREATE TABLE pawl_duties (
  name TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  lease_until INTEGER NOT NULL,
  place TEXT
) STRICT, WITHOUT ROWID;

CREATE TRIGGER pawl_quarantined_is_never_updated BEFORE UPDATE ON pawl_quarantined
BEGIN SELECT RAISE(ABORT, 'P8: what was taken aside is never changed'); END;

CREATE TRIGGER pawl_quarantined_is_never_deleted BEFORE DELETE ON pawl_quarantined
BEGIN SELECT RAISE(ABORT, 'P8: what was taken aside is never deleted'); END;
`
