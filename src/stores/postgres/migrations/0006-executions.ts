/**
 * The executions of jobs for people with a SQL client: one row for each attempt, from the facts
 * alone, as `executionsOf` in the library returns them. Pawl itself does not read it.
 *
 * `lease_expires_at` is the last expiry that a fact has; heartbeats write no facts, so the present
 * lease of a running job is `jobs.lease_until`. `error` is JSON text. Times are milliseconds since
 * 1970.
 */
const ofAttempt = (column: string, where: string, order: string) => `(
    SELECT fact.${column} FROM @schema.ledger AS fact
    WHERE fact.job = last.job AND fact.attempt = last.attempt${where}
    ORDER BY fact.seq ${order} LIMIT 1
  )`

const OWNER = ofAttempt('worker', '', 'ASC')
const EXPIRY = ofAttempt('lease_until', ' AND fact.lease_until IS NOT NULL', 'DESC')
const START = ofAttempt('at', " AND fact.statuses LIKE '%I%'", 'DESC')

const EXECUTIONS_VIEW = `
CREATE VIEW @schema.executions AS
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
  CASE WHEN right(last.statuses, 1) = 'A' THEN (last.data::json -> 'error')::text END AS error
FROM @schema.ledger AS last
WHERE last.attempt IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM @schema.ledger AS later
  WHERE later.job = last.job AND later.attempt = last.attempt AND later.seq > last.seq);
`

export const sql = (schema: string): string => EXECUTIONS_VIEW.replaceAll('@schema', () => schema)
