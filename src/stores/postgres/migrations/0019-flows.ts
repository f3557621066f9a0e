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
const SQL = `
ALTER TABLE @schema.jobs ADD COLUMN flow uuid;
ALTER TABLE @schema.jobs ADD COLUMN node int;
ALTER TABLE @schema.jobs ADD COLUMN links smallint;
DROP INDEX @schema.jobs_deadline;
CREATE INDEX jobs_deadline ON @schema.jobs (deadline_at, id)
  WHERE deadline_at IS NOT NULL AND (lane IN (1, 2, 7) OR lane = 0 AND links IS NOT NULL);
CREATE INDEX jobs_flow ON @schema.jobs (flow, node) WHERE flow IS NOT NULL;
CREATE INDEX jobs_flow_lane ON @schema.jobs (flow, lane) WHERE flow IS NOT NULL;

CREATE TABLE @schema.links (
  awaited uuid NOT NULL,
  waiter uuid NOT NULL,
  part smallint NOT NULL,
  need smallint NOT NULL CHECK (need BETWEEN 0 AND 3),
  state smallint NOT NULL CHECK (state BETWEEN 0 AND 6),
  seq int,
  PRIMARY KEY (awaited, waiter, part)
);
CREATE INDEX links_waiter ON @schema.links (waiter, state, need);
CREATE INDEX links_news ON @schema.links (waiter) WHERE state IN (1, 2, 5, 6);

CREATE TABLE @schema.flows (
  id uuid PRIMARY KEY,
  kind text NOT NULL CHECK (kind IN ('flow', 'batch')),
  key text COLLATE "C" UNIQUE,
  created_at bigint NOT NULL,
  size int NOT NULL,
  callbacks int NOT NULL,
  open smallint NOT NULL CHECK (open IN (0, 1))
);
`

/** The statements, for a schema whose name is quoted already. */
export const sql = (schema: string): string => SQL.replaceAll('@schema', () => schema)
