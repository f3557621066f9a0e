/**
 * The time of the file; see `../../../core/time-base.ts`. The newest row counts. Older rows are
 * what the doctor shows of the past; the last hundred are kept.
 *
 * `at` is the file time when the row was written. `pawl_workers.ahead_ms` is by how much file time
 * was ahead of the worker's wall clock when it reported last.
 */
export const sql = `
CREATE TABLE pawl_time (
  number INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  boot TEXT NOT NULL,
  offset_ms INTEGER NOT NULL,
  elapsed_ms REAL NOT NULL,
  suspended_ms REAL,
  behind_ms INTEGER NOT NULL CHECK (behind_ms >= 0),
  reason TEXT NOT NULL,
  moved_ms INTEGER NOT NULL CHECK (moved_ms >= 0)
) STRICT;

ALTER TABLE pawl_workers ADD COLUMN ahead_ms INTEGER;
`
