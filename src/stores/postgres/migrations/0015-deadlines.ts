/**
 * An index by which recovery finds jobs that wait past their deadline.
 *
 * The view of executions replaces that of migration 8 and adds `thrown`: the error that the handler
 * threw, as JSON text, with its name, code, stack and causes. `lease_expires_at` is the last expiry
 * that a fact has. Heartbeats write no facts, so the present lease of a running job is
 * `jobs.lease_until`. `error` is JSON text. Times are milliseconds since 1970. `queue_ms` and
 * `duration_ms` are null while the attempt is open.
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

/** Servers write views down in different words, so the doctor restores it from this text. */
export const EXECUTIONS_VIEW = `
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
  ${timing('durationMs')} AS duration_ms,
  CASE WHEN right(last.statuses, 1) = 'A' THEN (last.data::json -> 'thrown')::text END AS thrown
FROM @schema.ledger AS last
WHERE last.attempt IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM @schema.ledger AS later
  WHERE later.job = last.job AND later.attempt = last.attempt AND later.seq > last.seq);
`

/** Jobs that wait, or are ready, and have a deadline. */
const DEADLINES = `
CREATE INDEX jobs_deadline ON @schema.jobs (deadline_at, id)
  WHERE deadline_at IS NOT NULL AND lane IN (1, 2, 7);
`

export const sql = (schema: string): string =>
  `${DEADLINES}${EXECUTIONS_VIEW}`.replaceAll('@schema', () => schema)
