/**
 * Limits. `gates` counts what runs, one row for each gate that is in use; see
 * `../../../core/limits/gates.ts`. `limits` has what is in force, and `limit_records` every change
 * of it. Records are never changed or deleted.
 *
 * `jobs.slots` names the gates that a held job counts in, so `gates.used` can be counted again at
 * any time. `jobs.blocked_on` is the gate that blocks a job, and has a meaning only in lane 7.
 * A queue that is gated has a limit of its own: its jobs are not claimed by the fast path.
 */
/** Everything but the number and the time of the last fact. */
const UNCHANGED = `rid id lane machine state queue type priority run_at attempt failures crashes
  releases status claim worker lease_until created_at started_at ended_at outcome reason error
  blocked_reason stalled cancel_asked_at progress key limit_key tags retry_of timeout_ms
  deadline_at policy slots blocked_on`
  .split(/\s+/)
  .map((column) => `NEW.${column} IS OLD.${column}`)
  .join(' AND ')

export const sql = `
ALTER TABLE pawl_jobs ADD COLUMN slots TEXT CHECK (slots IS NULL OR lane = 3);
ALTER TABLE pawl_jobs ADD COLUMN blocked_on TEXT;

CREATE INDEX pawl_jobs_blocked_on ON pawl_jobs (blocked_on, priority, run_at, rid)
  WHERE lane = 7;
DROP INDEX pawl_jobs_blocked;
CREATE INDEX pawl_jobs_blocked ON pawl_jobs (queue, priority, run_at, rid) WHERE lane = 7;

DROP TRIGGER IF EXISTS pawl_succeeded_is_final;
CREATE TRIGGER pawl_succeeded_is_final BEFORE UPDATE ON pawl_jobs
WHEN OLD.outcome = 'succeeded' AND NOT (NEW.seq = OLD.seq + 1 AND ${UNCHANGED})
BEGIN SELECT RAISE(ABORT, 'P6: a succeeded job never changes'); END;

ALTER TABLE pawl_queues ADD COLUMN gated INTEGER NOT NULL DEFAULT 0;

CREATE TABLE pawl_limits (
  name TEXT PRIMARY KEY,
  max INTEGER CHECK (max >= 0),
  period_ms INTEGER CHECK (period_ms > 0),
  burst INTEGER CHECK (burst > 0),
  version INTEGER NOT NULL DEFAULT 0,
  declared_at INTEGER,
  override INTEGER CHECK (override >= 0),
  override_at INTEGER,
  override_by TEXT,
  override_note TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE pawl_gates (
  key TEXT PRIMARY KEY,
  used INTEGER NOT NULL DEFAULT 0 CHECK (used >= 0),
  asked INTEGER,
  asked_at INTEGER,
  tat INTEGER,
  closed_until INTEGER,
  open_at INTEGER,
  waiting INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE INDEX pawl_gates_open ON pawl_gates (open_at) WHERE open_at IS NOT NULL;
CREATE INDEX pawl_gates_waiting ON pawl_gates (key) WHERE waiting = 1;

CREATE TABLE pawl_limit_records (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  name TEXT NOT NULL,
  action TEXT NOT NULL CHECK (action IN ('declare', 'set', 'reset')),
  actor TEXT NOT NULL,
  operator TEXT,
  note TEXT,
  version_before INTEGER,
  version INTEGER,
  max_before INTEGER,
  max INTEGER,
  period_ms_before INTEGER,
  period_ms INTEGER,
  burst_before INTEGER,
  burst INTEGER,
  override_before INTEGER,
  override INTEGER
) STRICT;

CREATE INDEX pawl_limit_records_name ON pawl_limit_records (name, number);

CREATE TRIGGER pawl_limit_records_are_never_updated BEFORE UPDATE ON pawl_limit_records
BEGIN SELECT RAISE(ABORT, 'P8: records of limits are never changed'); END;

CREATE TRIGGER pawl_limit_records_are_never_deleted BEFORE DELETE ON pawl_limit_records
BEGIN SELECT RAISE(ABORT, 'P8: records of limits are never deleted'); END;

CREATE TRIGGER pawl_limit_records_are_never_replaced BEFORE INSERT ON pawl_limit_records
WHEN EXISTS (SELECT 1 FROM pawl_limit_records WHERE number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'P8: records of limits are never replaced'); END;
`
