/**
 * Groups. A job of a strict group has its group as the first of its limit keys; the index finds the
 * first job of a group that holds it: one that has neither ended nor committed, and is not parked
 * with a key that ends in `=0` (see `../../../core/limits/keys.ts`).
 *
 * `pawl_groups` has a row for each group of a queue that waits for its turn. `credit` is how many
 * of its jobs may still start in the present turn. The fast path does not claim from a queue that
 * rotates.
 */
export const sql = `
CREATE INDEX pawl_jobs_strict ON pawl_jobs (
  substr(limit_key, 1, instr(replace(limit_key, '=', ' ') || ' ', ' ') - 1), created_at, rid)
  WHERE limit_key >= 'strict/' AND limit_key < 'strict0' AND lane <> 5 AND lane <> 6
    AND NOT (lane = 4 AND instr(substr(limit_key, 1, instr(limit_key || ' ', ' ')), '=') > 0);

CREATE TABLE pawl_groups (
  key TEXT PRIMARY KEY,
  queue TEXT NOT NULL,
  turn INTEGER NOT NULL,
  credit INTEGER NOT NULL CHECK (credit > 0),
  weight INTEGER NOT NULL CHECK (weight > 0),
  weight_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX pawl_groups_turn ON pawl_groups (queue, turn);

ALTER TABLE pawl_queues ADD COLUMN rotates INTEGER NOT NULL DEFAULT 0;
`
