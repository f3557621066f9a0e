/**
 * The executions of jobs for people with a SQL client: one row for each attempt, from the facts
 * alone, as `executionsOf` in the library returns them. Pawl itself does not read it.
 *
 * `lease_expires_at` is the last expiry that a fact has; heartbeats write no facts, so the present
 * lease of a running job is `pawl_jobs.lease_until`. `error` is JSON text. Times are milliseconds
 * since 1970.
 */
const ofAttempt = (column: string, where: string, order: string) => `(
    SELECT fact.${column} FROM pawl_ledger AS fact
    WHERE fact.job = last.job AND fact.attempt = last.attempt${where}
    ORDER BY fact.seq ${order} LIMIT 1
  )`

const OWNER = ofAttempt('worker', '', 'ASC')
const EXPIRY = ofAttempt('lease_until', ' AND fact.lease_until IS NOT NULL', 'DESC')
const START = ofAttempt('at', " AND instr(fact.statuses, 'I') > 0", 'DESC')

export const sql = `
CREATE VIEW pawl_executions AS
SELECT pawl_jobs.id || '/' || last.attempt AS exec_id,
  pawl_jobs.id AS job_id,
  last.attempt AS attempt,
  ${OWNER} AS lease_owner,
  ${EXPIRY} AS lease_expires_at,
  CASE substr(last.statuses, -1)
    WHEN 'L' THEN 'LEASED' WHEN 'I' THEN 'IN_PROGRESS' WHEN 'C' THEN 'COMMITTED'
    WHEN 'D' THEN 'DONE' WHEN 'A' THEN 'ABORTED' END AS status,
  ${START} AS started_at,
  CASE WHEN substr(last.statuses, -1) IN ('D', 'A') THEN last.at END AS finished_at,
  CASE WHEN substr(last.statuses, -1) = 'A' AND json_valid(last.data)
    THEN json_extract(last.data, '$.error') END AS error
FROM pawl_ledger AS last JOIN pawl_jobs ON pawl_jobs.rid = last.job
WHERE last.attempt IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM pawl_ledger AS later
  WHERE later.job = last.job AND later.attempt = last.attempt AND later.seq > last.seq);
`
