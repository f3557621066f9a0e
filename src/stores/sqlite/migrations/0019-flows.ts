/**
 * Flows: what connects jobs; see `../../../core/job/links.ts` and `../../contract/flows.ts`.
 *
 * `jobs.flow` is the flow or batch of a job, or the parent of an invoked child, and `node` its
 * number there. `jobs.links` has bits that facts determine; null means 0.
 *
 * The index of deadlines has jobs that wait for others, too.
 *
 * A row of `links` says that `waiter` waits for `awaited`, in the group `part` of its dependencies:
 *
 *   need    0 success   1 end   2 failure   3 end; the end of the waiter cancels the awaited job
 *   state   0 open                    6 open again, not examined
 *           1 arrived, not examined   3 arrived
 *           2 failed, not examined    4 failed
 *           5 the waiter has ended: the awaited job is to be cancelled; open when it was asked to
 *   seq     the number of the last fact of the awaited job when it ended
 *
 * `flows` has the flows and batches themselves. `open` is 1 while members can be added to a batch,
 * of which nodes 0 to `callbacks` are callbacks.
 */
/** Everything but the number and the time of the last fact. */
const UNCHANGED = `rid id lane machine state queue type priority ahead_ms run_at attempt failures
  crashes releases status claim worker lease_until created_at started_at ended_at outcome reason
  error blocked_reason stalled cancel_asked_at progress key limit_key tags retry_of timeout_ms
  deadline_at policy slots blocked_on flow node links`
  .split(/\s+/)
  .map((column) => `NEW.${column} IS OLD.${column}`)
  .join(' AND ')

export const sql = `
ALTER TABLE pawl_jobs ADD COLUMN flow TEXT;
ALTER TABLE pawl_jobs ADD COLUMN node INTEGER;
ALTER TABLE pawl_jobs ADD COLUMN links INTEGER;
DROP INDEX pawl_jobs_deadline;
CREATE INDEX pawl_jobs_deadline ON pawl_jobs (deadline_at, rid)
  WHERE deadline_at IS NOT NULL AND (lane IN (1, 2, 7) OR lane = 0 AND links IS NOT NULL);
CREATE INDEX pawl_jobs_flow ON pawl_jobs (flow, node) WHERE flow IS NOT NULL;
CREATE INDEX pawl_jobs_flow_lane ON pawl_jobs (flow, lane) WHERE flow IS NOT NULL;

CREATE TABLE pawl_links (
  awaited TEXT NOT NULL,
  waiter TEXT NOT NULL,
  part INTEGER NOT NULL,
  need INTEGER NOT NULL CHECK (need BETWEEN 0 AND 3),
  state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 6),
  seq INTEGER,
  PRIMARY KEY (awaited, waiter, part)
) STRICT, WITHOUT ROWID;
CREATE INDEX pawl_links_waiter ON pawl_links (waiter, state, need);
CREATE INDEX pawl_links_news ON pawl_links (waiter) WHERE state IN (1, 2, 5, 6);

CREATE TABLE pawl_flows (
  id TEXT NOT NULL PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('flow', 'batch')),
  key TEXT UNIQUE,
  created_at INTEGER NOT NULL,
  size INTEGER NOT NULL,
  callbacks INTEGER NOT NULL,
  open INTEGER NOT NULL CHECK (open IN (0, 1))
) STRICT, WITHOUT ROWID;

DROP TRIGGER IF EXISTS pawl_succeeded_is_final;
CREATE TRIGGER pawl_succeeded_is_final BEFORE UPDATE ON pawl_jobs
WHEN OLD.outcome = 'succeeded' AND NOT (NEW.seq = OLD.seq + 1 AND ${UNCHANGED})
BEGIN SELECT RAISE(ABORT, 'P6: a succeeded job never changes'); END;
`
