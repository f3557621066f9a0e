/**
 * Retention. `pawl_tombstones` keeps the key of a job that retention removed, so that the key stays
 * taken (P12): the id of that job, how and when it ended, and until when the key is kept. Records
 * of retention also say who asked for the removal and how many keys it kept.
 *
 * Admission. `pawl_admissions` has a row for each job type, rule (1 rate limit, 2 debounce,
 * 3 singleton) and key that was enqueued lately; see `../../../core/admission.ts`.
 */
export const sql = `
CREATE TABLE pawl_tombstones (
  type TEXT NOT NULL,
  key TEXT NOT NULL,
  job TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('succeeded', 'failed', 'cancelled')),
  ended_at INTEGER NOT NULL,
  keep_until INTEGER NOT NULL CHECK (keep_until > ended_at),
  PRIMARY KEY (type, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX pawl_tombstones_until ON pawl_tombstones (keep_until);

ALTER TABLE pawl_pruned ADD COLUMN keys INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pawl_pruned ADD COLUMN operator TEXT;
ALTER TABLE pawl_pruned ADD COLUMN note TEXT;

CREATE TABLE pawl_admissions (
  type TEXT NOT NULL,
  kind INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 3),
  key TEXT NOT NULL,
  job TEXT,
  next TEXT,
  first_at INTEGER,
  counts TEXT,
  look_at INTEGER NOT NULL,
  PRIMARY KEY (type, kind, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX pawl_admissions_look ON pawl_admissions (look_at);
CREATE INDEX pawl_admissions_next ON pawl_admissions (next) WHERE next IS NOT NULL;
`
