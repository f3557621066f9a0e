/**
 * Priorities that age. A job is ordered as if it had been due `ahead_ms` earlier; null means 0. The
 * indexes of ready and blocked jobs have this order; see `orderAt` in `../../columns.ts`. Those of
 * queues include `run_at`, so that the oldest job of each queue is found by them alone.
 */
const SQL = `
ALTER TABLE @schema.jobs ADD COLUMN ahead_ms int;

DROP INDEX @schema.jobs_ready;
CREATE INDEX jobs_ready ON @schema.jobs (
  queue, priority, (run_at - coalesce(ahead_ms, 0)), id)
  INCLUDE (run_at) WHERE lane = 2;
DROP INDEX @schema.jobs_blocked;
CREATE INDEX jobs_blocked ON @schema.jobs (
  queue, priority, (run_at - coalesce(ahead_ms, 0)), id)
  INCLUDE (run_at) WHERE lane = 7;
DROP INDEX @schema.jobs_blocked_on;
CREATE INDEX jobs_blocked_on ON @schema.jobs (
  blocked_on, priority, (run_at - coalesce(ahead_ms, 0)), id)
  WHERE lane = 7;
`

/** The statements, for a schema whose name is quoted already. */
export const sql = (schema: string): string => SQL.replaceAll('@schema', () => schema)
