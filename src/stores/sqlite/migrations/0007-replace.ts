/**
 * Refuses REPLACE. A statement with OR REPLACE deletes every row that is in its way. SQLite asks
 * delete triggers about that only if the connection has `recursive_triggers` on, which the
 * `sqlite3` program and most drivers have not. So an insert into a table of facts looks first for
 * rows that it would replace, by the unique keys of the table.
 *
 * Inserts into pawl_jobs are left out: they would cost another 5 %, and the doctor finds a row that
 * was replaced, because the ledger is the truth. Decision 0021 has the figures. Updates that would
 * replace another job are refused; no statement of Pawl's hot paths sets these columns.
 */
export const sql = `
CREATE TRIGGER pawl_ledger_is_never_replaced BEFORE INSERT ON pawl_ledger
WHEN EXISTS (SELECT 1 FROM pawl_ledger WHERE job = NEW.job AND seq = NEW.seq)
  OR (NEW.pos > 0 AND EXISTS (SELECT 1 FROM pawl_ledger WHERE pos = NEW.pos))
  OR (NEW.kind = 30 AND EXISTS (SELECT 1 FROM pawl_ledger WHERE job = NEW.job AND kind = 30))
  OR (NEW.kind = 22 AND EXISTS (
    SELECT 1 FROM pawl_ledger WHERE job = NEW.job AND kind = 22
    AND json_extract(data, '$.step.name') = json_extract(NEW.data, '$.step.name')
    AND json_extract(data, '$.step.n') = json_extract(NEW.data, '$.step.n')))
BEGIN SELECT RAISE(ABORT, 'P8: facts are never replaced'); END;

CREATE TRIGGER pawl_jobs_never_replace_others BEFORE UPDATE OF rid, id, type, key ON pawl_jobs
WHEN EXISTS (SELECT 1 FROM pawl_jobs WHERE id = NEW.id AND rid <> OLD.rid)
  OR (NEW.rid <> OLD.rid AND EXISTS (SELECT 1 FROM pawl_jobs WHERE rid = NEW.rid))
  OR (NEW.key IS NOT NULL AND EXISTS (
    SELECT 1 FROM pawl_jobs WHERE type = NEW.type AND key = NEW.key AND rid <> OLD.rid))
BEGIN SELECT RAISE(ABORT, 'P1: jobs are never replaced'); END;

CREATE TRIGGER pawl_run_events_are_never_replaced BEFORE INSERT ON pawl_run_events
WHEN EXISTS (SELECT 1 FROM pawl_run_events WHERE run = NEW.run AND seq = NEW.seq)
BEGIN SELECT RAISE(ABORT, 'P8: events are never replaced'); END;

CREATE TRIGGER pawl_quarantined_is_never_replaced BEFORE INSERT ON pawl_quarantined
WHEN EXISTS (SELECT 1 FROM pawl_quarantined WHERE number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'P8: what was taken aside is never replaced'); END;

CREATE TRIGGER pawl_seals_are_never_replaced BEFORE INSERT ON pawl_seals
WHEN EXISTS (SELECT 1 FROM pawl_seals WHERE number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'P8: seals are never replaced'); END;

CREATE TRIGGER pawl_seal_removals_are_never_replaced BEFORE INSERT ON pawl_seal_removals
WHEN EXISTS (SELECT 1 FROM pawl_seal_removals WHERE number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'P8: what retention took from seals is never replaced'); END;
`
