/**
 * Groups. A job of a strict group has its group as the first of its limit keys; the index finds the
 * first job of a group that holds it: one that has neither ended nor committed, and is not parked
 * with a key that ends in `=0` (see `../../../core/limits/keys.ts`).
 *
 * `groups` has a row for each group of a queue that waits for its turn. `credit` is how many of its
 * jobs may still start in the present turn. A queue that rotates is not claimed by the fast path.
 */
const SQL = `
CREATE INDEX jobs_strict ON @schema.jobs (
  split_part(split_part(limit_key, ' ', 1), '=', 1), created_at, id)
  WHERE limit_key >= 'strict/' AND limit_key < 'strict0' AND lane <> 5 AND lane <> 6
    AND NOT (lane = 4 AND strpos(split_part(limit_key, ' ', 1), '=') > 0);

CREATE TABLE @schema.groups (
  key text COLLATE "C" PRIMARY KEY,
  queue text COLLATE "C" NOT NULL,
  turn bigint NOT NULL,
  credit bigint NOT NULL CHECK (credit > 0),
  weight bigint NOT NULL CHECK (weight > 0),
  weight_at bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

CREATE INDEX groups_turn ON @schema.groups (queue, turn);

CREATE SEQUENCE @schema.group_turns;

ALTER TABLE @schema.queues ADD COLUMN rotates smallint NOT NULL DEFAULT 0;
`

/** The statements, for a schema whose name is quoted already. */
export const sql = (schema: string): string => SQL.replaceAll('@schema', () => schema)
