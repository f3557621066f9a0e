/**
 * The executions of jobs for people with a SQL client, as `executionsOf` in the library returns
 * them: one row for each attempt, from the facts alone. Pawl itself does not read the view. It
 * replaces that of migration 6 and adds the times that the fact that closes an attempt records.
 *
 * `lease_expires_at` is the last expiry that a fact has. Heartbeats write no facts, so the present
 * lease of a running job is `pawl_jobs.lease_until`. `error` is JSON text. Times are milliseconds
 * since 1970. `queue_ms` and `duration_ms` are null while the attempt is open, and if the fact was
 * written by a release that did not record them.
 */
const ofAttempt = (column: string, where: string, order: string) => `(
    SELECT ${column} FROM pawl_ledger AS fact
    WHERE fact.job = last.job AND fact.attempt = last.attempt${where}
    ORDER BY fact.seq ${order} LIMIT 1
  )`

const OWNER = ofAttempt('fact.worker', '', 'ASC')
const EXPIRY = ofAttempt('fact.lease_until', ' AND fact.lease_until IS NOT NULL', 'DESC')
const START = ofAttempt('fact.at', " AND instr(fact.statuses, 'I') > 0", 'DESC')

const CLOSING = " AND (instr(fact.statuses, 'C') > 0 OR instr(fact.statuses, 'A') > 0)"
const timing = (field: string) =>
  ofAttempt(
    `CASE WHEN json_valid(fact.data) THEN json_extract(fact.data, '$.timing.${field}') END`,
    CLOSING,
    'DESC',
  )

export const sql = `
DROP VIEW IF EXISTS pawl_executions;
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
    THEN json_extract(last.data, '$.error') END AS error,
  ${timing('queueMs')} AS queue_ms,
  ${timing('durationMs')} AS duration_ms
FROM pawl_ledger AS last JOIN pawl_jobs ON pawl_jobs.rid = last.job
WHERE last.attempt IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM pawl_ledger AS later
  WHERE later.job = last.job AND later.attempt = last.attempt AND later.seq > last.seq);
`
