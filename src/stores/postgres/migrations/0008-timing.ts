/**
 * The executions of jobs for people with a SQL client, as `executionsOf` in the library returns
 * them: one row for each attempt, from the facts alone. Pawl itself does not read the view. It
 * replaces that of migration 6 and adds the times that the fact that closes an attempt records.
 *
 * `lease_expires_at` is the last expiry that a fact has. Heartbeats write no facts, so the present
 * lease of a running job is `jobs.lease_until`. `error` is JSON text. Times are milliseconds
 * since 1970. `queue_ms` and `duration_ms` are null while the attempt is open, and if the fact was
 * written by a release that did not record them.
 */
const ofAttempt = (column: string, where: string, order: string) => `(
    SELECT ${column} FROM @schema.ledger AS fact
    WHERE fact.job = last.job AND fact.attempt = last.attempt${where}
    ORDER BY fact.seq ${order} LIMIT 1
  )`

const OWNER = ofAttempt('fact.worker', '', 'ASC')
const EXPIRY = ofAttempt('fact.lease_until', ' AND fact.lease_until IS NOT NULL', 'DESC')
const START = ofAttempt('fact.at', " AND fact.statuses LIKE '%I%'", 'DESC')

const CLOSING = " AND (fact.statuses LIKE '%C%' OR fact.statuses LIKE '%A%')"
const timing = (field: string) =>
  ofAttempt(`(fact.data::json -> 'timing' ->> '${field}')::bigint`, CLOSING, 'DESC')

/** The view, with the name of the schema left open. */
const EXECUTIONS_VIEW = `
CREATE OR REPLACE VIEW @schema.executions AS
SELECT last.job::text || '/' || last.attempt AS exec_id,
  last.job AS job_id,
  last.attempt AS attempt,
  ${OWNER} AS lease_owner,
  ${EXPIRY} AS lease_expires_at,
  CASE right(last.statuses, 1)
    WHEN 'L' THEN 'LEASED' WHEN 'I' THEN 'IN_PROGRESS' WHEN 'C' THEN 'COMMITTED'
    WHEN 'D' THEN 'DONE' WHEN 'A' THEN 'ABORTED' END AS status,
  ${START} AS started_at,
  CASE WHEN right(last.statuses, 1) IN ('D', 'A') THEN last.at END AS finished_at,
  CASE WHEN right(last.statuses, 1) = 'A' THEN (last.data::json -> 'error')::text END AS error,
  ${timing('queueMs')} AS queue_ms,
  ${timing('durationMs')} AS duration_ms
FROM @schema.ledger AS last
WHERE last.attempt IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM @schema.ledger AS later
  WHERE later.job = last.job AND later.attempt = last.attempt AND later.seq > last.seq);
`

export const sql = (schema: string): string => EXECUTIONS_VIEW.replaceAll('@schema', () => schema)
