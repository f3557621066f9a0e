/**
 * An index by which recovery finds jobs that wait past their deadline.
 *
 * The view of executions replaces that of migration 8 and adds `thrown`: the error that the handler
 * threw, as JSON text, with its name, code, stack and causes. `lease_expires_at` is the last expiry
 * that a fact has. Heartbeats write no facts, so the present lease of a running job is
 * `pawl_jobs.lease_until`. `error` is JSON text. Times are milliseconds since 1970. `queue_ms` and
 * `duration_ms` are null while the attempt is open.
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
CREATE INDEX pawl_jobs_deadline ON pawl_jobs (deadline_at, rid)
  WHERE deadline_at IS NOT NULL AND lane IN (1, 2, 7);
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
  ${timing('durationMs')} AS duration_ms,
  CASE WHEN substr(last.statuses, -1) = 'A' AND json_valid(last.data)
    THEN json_extract(last.data, '$.thrown') END AS thrown
FROM pawl_ledger AS last JOIN pawl_jobs ON pawl_jobs.rid = last.job
WHERE last.attempt IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM pawl_ledger AS later
  WHERE later.job = last.job AND later.attempt = last.attempt AND later.seq > last.seq);
`
