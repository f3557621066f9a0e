/**
 * Schedules, and the records of their ticks and changes; see `../../contract/schedules.ts`. A row
 * of `pawl_schedules` has the definition as JSON text with its mark, the cursor (`cursor_at`), and
 * when it has to be looked at next (`look_at`, null while it is paused). Like facts, records are
 * never changed, deleted or replaced.
 */
export const sql = `
CREATE TABLE pawl_schedules (
  name TEXT PRIMARY KEY NOT NULL,
  definition TEXT NOT NULL,
  input TEXT NOT NULL,
  mark TEXT NOT NULL,
  origin TEXT NOT NULL CHECK (origin IN ('code', 'program')),
  version INTEGER NOT NULL,
  cursor_at INTEGER NOT NULL,
  next_at INTEGER,
  look_at INTEGER,
  buffer TEXT NOT NULL,
  open_jobs TEXT NOT NULL,
  last_tick INTEGER,
  last_job TEXT,
  paused_at INTEGER,
  paused_by TEXT,
  pause_note TEXT,
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX pawl_schedules_look ON pawl_schedules (look_at, name) WHERE look_at IS NOT NULL;

CREATE TABLE pawl_schedule_records (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  schedule TEXT NOT NULL,
  action TEXT NOT NULL CHECK (action IN ('fired', 'late', 'skipped', 'missed', 'backfilled',
    'put', 'pause', 'resume', 'run', 'backfill', 'remove')),
  actor TEXT NOT NULL,
  operator TEXT,
  note TEXT,
  tick INTEGER,
  last_tick INTEGER,
  ticks INTEGER,
  previous INTEGER,
  job TEXT,
  reason TEXT,
  before TEXT,
  after TEXT
) STRICT;

CREATE INDEX pawl_schedule_records_schedule ON pawl_schedule_records (schedule, number);
CREATE INDEX pawl_schedule_records_tick ON pawl_schedule_records (schedule, tick)
  WHERE tick IS NOT NULL;

CREATE TRIGGER pawl_schedule_records_are_never_updated BEFORE UPDATE ON pawl_schedule_records
BEGIN SELECT RAISE(ABORT, 'P8: records of schedules are never changed'); END;

CREATE TRIGGER pawl_schedule_records_are_never_deleted BEFORE DELETE ON pawl_schedule_records
BEGIN SELECT RAISE(ABORT, 'P8: records of schedules are never deleted'); END;

CREATE TRIGGER pawl_schedule_records_are_never_replaced BEFORE INSERT ON pawl_schedule_records
WHEN EXISTS (SELECT 1 FROM pawl_schedule_records WHERE number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'P8: records of schedules are never replaced'); END;
`
