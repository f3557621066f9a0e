/**
 * Priorities that age. A job is ordered as if it had been due `ahead_ms` earlier; null means 0. The
 * indexes of ready and blocked jobs have this order; see `orderAt` in `../../columns.ts`. Those of
 * queues end with `run_at`, so that the oldest job of each queue is found by them alone.
 */
/** Everything but the number and the time of the last fact. */
const UNCHANGED = `rid id lane machine state queue type priority ahead_ms run_at attempt failures
  crashes releases status claim worker lease_until created_at started_at ended_at outcome reason
  error blocked_reason stalled cancel_asked_at progress key limit_key tags retry_of timeout_ms
  deadline_at policy slots blocked_on`
  .split(/\s+/)
  .map((column) => `NEW.${column} IS OLD.${column}`)
  .join(' AND ')

export const sql = `
ALTER TABLE pawl_jobs ADD COLUMN ahead_ms INTEGER;

DROP INDEX pawl_jobs_ready;
CREATE INDEX pawl_jobs_ready ON pawl_jobs (
  queue, priority, run_at - coalesce(ahead_ms, 0), rid, run_at)
  WHERE lane = 2;
DROP INDEX pawl_jobs_blocked;
CREATE INDEX pawl_jobs_blocked ON pawl_jobs (
  queue, priority, run_at - coalesce(ahead_ms, 0), rid, run_at)
  WHERE lane = 7;
DROP INDEX pawl_jobs_blocked_on;
CREATE INDEX pawl_jobs_blocked_on ON pawl_jobs (
  blocked_on, priority, run_at - coalesce(ahead_ms, 0), rid)
  WHERE lane = 7;

DROP TRIGGER IF EXISTS pawl_succeeded_is_final;
CREATE TRIGGER pawl_succeeded_is_final BEFORE UPDATE ON pawl_jobs
WHEN OLD.outcome = 'succeeded' AND NOT (NEW.seq = OLD.seq + 1 AND ${UNCHANGED})
BEGIN SELECT RAISE(ABORT, 'P6: a succeeded job never changes'); END;
`
