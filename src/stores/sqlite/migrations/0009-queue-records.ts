/**
 * Records of changes of queues: who paused, resumed or bounded one, when and why, and the settings
 * before and after; see `../../queue-records.ts`. Like facts, they are never changed, deleted or
 * replaced. Every value has a column of its own, so that no stored text has to be parsed.
 */
export const sql = `
CREATE TABLE pawl_queue_records (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  queue TEXT NOT NULL,
  action TEXT NOT NULL CHECK (action IN ('pause', 'resume', 'limit')),
  actor TEXT NOT NULL,
  operator TEXT,
  note TEXT,
  paused_at_before INTEGER,
  paused_at INTEGER,
  max_depth_before INTEGER,
  max_depth INTEGER,
  max_wait_ms_before INTEGER,
  max_wait_ms INTEGER
) STRICT;

CREATE INDEX pawl_queue_records_queue ON pawl_queue_records (queue, number);

CREATE TRIGGER pawl_queue_records_are_never_updated BEFORE UPDATE ON pawl_queue_records
BEGIN SELECT RAISE(ABORT, 'P8: records of queues are never changed'); END;

CREATE TRIGGER pawl_queue_records_are_never_deleted BEFORE DELETE ON pawl_queue_records
BEGIN SELECT RAISE(ABORT, 'P8: records of queues are never deleted'); END;

CREATE TRIGGER pawl_queue_records_are_never_replaced BEFORE INSERT ON pawl_queue_records
WHEN EXISTS (SELECT 1 FROM pawl_queue_records WHERE number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'P8: records of queues are never replaced'); END;
`
