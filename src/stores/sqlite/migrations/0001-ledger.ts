/**
 * The first schema. `jobs` is the fold, `ledger` the facts. Constraints restate the promises, so
 * that not even a mistake of ours, or a person with a shell, can break them unseen:
 *
 *   P3  pawl_one_commit: at most one fact of a job is a commit
 *   P6  a succeeded job is never updated, but for the number of a fact that notes a repair;
 *       a job that has not ended is never deleted
 *   P8  a fact is never updated, nor deleted while its job exists
 *
 * Every name begins with pawl_, because the file may be the user's own: a job can then be enqueued
 * in the same transaction as the user's own writes.
 *
 * Partial indexes hold only what is claimable, waiting, held or parked now, so that the cost of a
 * claim does not grow with history.
 */
/** Everything but the number and the time of the last fact. */
const UNCHANGED = `rid id lane machine state queue type priority run_at attempt failures crashes
  releases status claim worker lease_until created_at started_at ended_at outcome reason error
  blocked_reason stalled cancel_asked_at progress key limit_key tags retry_of timeout_ms
  deadline_at policy`
  .split(/\s+/)
  .map((column) => `NEW.${column} IS OLD.${column}`)
  .join(' AND ')

export const sql = `
CREATE TABLE pawl_machines (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  held TEXT NOT NULL,
  definition TEXT NOT NULL,
  UNIQUE (name, version)
) STRICT;

CREATE TABLE pawl_jobs (
  rid INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  lane INTEGER NOT NULL CHECK (lane BETWEEN 0 AND 7),
  machine INTEGER NOT NULL REFERENCES pawl_machines (id),
  state TEXT NOT NULL,
  queue TEXT NOT NULL,
  type TEXT NOT NULL,
  priority INTEGER NOT NULL,
  run_at INTEGER,
  seq INTEGER NOT NULL CHECK (seq >= 1),
  attempt INTEGER NOT NULL DEFAULT 0 CHECK (attempt >= 0),
  failures INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),
  crashes INTEGER NOT NULL DEFAULT 0 CHECK (crashes >= 0),
  releases INTEGER NOT NULL DEFAULT 0 CHECK (releases >= 0),
  status TEXT,
  claim TEXT,
  worker TEXT,
  lease_until INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER,
  outcome TEXT,
  reason TEXT,
  error TEXT,
  blocked_reason TEXT,
  stalled INTEGER NOT NULL DEFAULT 0,
  cancel_asked_at INTEGER,
  progress TEXT,
  key TEXT,
  limit_key TEXT,
  tags TEXT,
  retry_of TEXT,
  timeout_ms INTEGER,
  deadline_at INTEGER,
  policy TEXT,
  CHECK ((lane = 3) = (lease_until IS NOT NULL)),
  CHECK (lane <> 3 OR (claim IS NOT NULL AND worker IS NOT NULL AND status IS NOT NULL)),
  CHECK (lane <> 3 OR status IN ('L', 'I')),
  CHECK ((lane = 5) = (outcome IS NOT NULL)),
  CHECK ((lane = 5) = (ended_at IS NOT NULL)),
  CHECK (lane NOT IN (1, 2) OR run_at IS NOT NULL)
) STRICT;

CREATE INDEX pawl_jobs_ready ON pawl_jobs (queue, priority, run_at, rid) WHERE lane = 2;
CREATE INDEX pawl_jobs_waiting ON pawl_jobs (run_at, rid) WHERE lane = 1;
CREATE INDEX pawl_jobs_held ON pawl_jobs (lease_until, rid) WHERE lane = 3;
CREATE INDEX pawl_jobs_parked ON pawl_jobs (rid) WHERE lane = 4;
CREATE INDEX pawl_jobs_idle ON pawl_jobs (rid) WHERE lane = 0;
CREATE INDEX pawl_jobs_delivering ON pawl_jobs (rid) WHERE lane = 6;
CREATE INDEX pawl_jobs_blocked ON pawl_jobs (rid) WHERE lane = 7;
CREATE INDEX pawl_jobs_ended ON pawl_jobs (ended_at, rid) WHERE lane = 5;
CREATE UNIQUE INDEX pawl_jobs_key ON pawl_jobs (type, key) WHERE key IS NOT NULL;

CREATE TABLE pawl_ledger (
  pos INTEGER PRIMARY KEY AUTOINCREMENT,
  job INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  version INTEGER NOT NULL DEFAULT 1,
  at INTEGER NOT NULL,
  path TEXT NOT NULL,
  actor TEXT NOT NULL,
  attempt INTEGER,
  statuses TEXT,
  claim TEXT,
  worker TEXT,
  lease_until INTEGER,
  data TEXT,
  payload TEXT,
  UNIQUE (job, seq)
) STRICT;

CREATE UNIQUE INDEX pawl_one_commit ON pawl_ledger (job) WHERE kind = 30;
CREATE UNIQUE INDEX pawl_one_step ON pawl_ledger
  (job, json_extract(data, '$.step.name'), json_extract(data, '$.step.n')) WHERE kind = 22;

CREATE TABLE pawl_outbox (
  eid INTEGER PRIMARY KEY AUTOINCREMENT,
  job INTEGER NOT NULL,
  type TEXT NOT NULL,
  name TEXT NOT NULL,
  n INTEGER NOT NULL,
  payload TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'parked')),
  tries INTEGER NOT NULL DEFAULT 0 CHECK (tries >= 0),
  run_at INTEGER NOT NULL,
  claim TEXT,
  error TEXT,
  UNIQUE (job, name, n)
) STRICT;

CREATE INDEX pawl_outbox_pending ON pawl_outbox (type, run_at, eid) WHERE state = 'pending';
CREATE INDEX pawl_outbox_parked ON pawl_outbox (eid) WHERE state = 'parked';

CREATE TABLE pawl_workers (
  id TEXT PRIMARY KEY,
  state TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL,
  info TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE pawl_pruned (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  jobs INTEGER NOT NULL,
  facts INTEGER NOT NULL,
  first_id TEXT NOT NULL,
  last_id TEXT NOT NULL,
  ended_before INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  archived INTEGER NOT NULL
) STRICT;

CREATE TABLE pawl_queues (
  name TEXT PRIMARY KEY,
  paused_at INTEGER,
  paused_by TEXT,
  max_depth INTEGER CHECK (max_depth >= 0),
  max_wait_ms INTEGER CHECK (max_wait_ms >= 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE pawl_ended_counts (
  queue TEXT NOT NULL,
  state TEXT NOT NULL,
  jobs INTEGER NOT NULL,
  PRIMARY KEY (queue, state)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER pawl_ledger_is_never_updated BEFORE UPDATE ON pawl_ledger
BEGIN SELECT RAISE(ABORT, 'P8: facts are never changed'); END;

CREATE TRIGGER pawl_ledger_is_never_deleted BEFORE DELETE ON pawl_ledger
WHEN EXISTS (SELECT 1 FROM pawl_jobs WHERE rid = OLD.job)
BEGIN SELECT RAISE(ABORT, 'P8: facts are not deleted while their job exists'); END;

CREATE TRIGGER pawl_succeeded_is_final BEFORE UPDATE ON pawl_jobs
WHEN OLD.outcome = 'succeeded' AND NOT (NEW.seq = OLD.seq + 1 AND ${UNCHANGED})
BEGIN SELECT RAISE(ABORT, 'P6: a succeeded job never changes'); END;

CREATE TRIGGER pawl_live_jobs_are_not_deleted BEFORE DELETE ON pawl_jobs WHEN OLD.lane <> 5
BEGIN SELECT RAISE(ABORT, 'P1: a job that has not ended is not deleted'); END;
`
