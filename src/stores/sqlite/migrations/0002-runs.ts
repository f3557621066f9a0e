/**
 * The tables of runs. `pawl_run_events` is the truth, one line of a run's log in each row; the row
 * of the run has its end, its snapshot and its holder. As in the ledger of jobs (P8), a line is
 * never changed, nor deleted while its run exists.
 */
export const sql = `
CREATE TABLE pawl_runs (
  id TEXT PRIMARY KEY,
  last_seq INTEGER NOT NULL CHECK (last_seq >= 1),
  last_hash TEXT NOT NULL,
  snapshot TEXT NOT NULL,
  fence TEXT,
  holder TEXT,
  lease_until INTEGER,
  cancel TEXT,
  failure TEXT,
  CHECK ((fence IS NULL) = (holder IS NULL)),
  CHECK ((fence IS NULL) = (lease_until IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE pawl_run_events (
  run TEXT NOT NULL,
  seq INTEGER NOT NULL CHECK (seq >= 1),
  line TEXT NOT NULL,
  PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE pawl_run_contents (
  run TEXT NOT NULL,
  path TEXT NOT NULL,
  content BLOB NOT NULL,
  PRIMARY KEY (run, path)
) STRICT;

CREATE TRIGGER pawl_run_events_are_never_updated BEFORE UPDATE ON pawl_run_events
BEGIN SELECT RAISE(ABORT, 'P8: events are never changed'); END;

CREATE TRIGGER pawl_run_events_are_never_deleted BEFORE DELETE ON pawl_run_events
WHEN EXISTS (SELECT 1 FROM pawl_runs WHERE id = OLD.run)
BEGIN SELECT RAISE(ABORT, 'P8: events are not deleted while their run exists'); END;

CREATE TRIGGER pawl_run_logs_only_grow BEFORE UPDATE ON pawl_runs
WHEN NEW.last_seq < OLD.last_seq OR NEW.id <> OLD.id
BEGIN SELECT RAISE(ABORT, 'P8: a log only grows'); END;
`
