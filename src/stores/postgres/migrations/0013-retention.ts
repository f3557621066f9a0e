/**
 * Retention, the same tables as on SQLite. `tombstones` keeps the key of a job that retention
 * removed, so that the key stays taken (P12). Records of retention also say who asked for the
 * removal and how many keys it kept.
 *
 * A statement that inserts a job may wait for the transaction that removes the last job with its
 * key. Afterwards the key is free in `jobs_key`, and the statement does not see the tombstone,
 * because its snapshot is older. The trigger runs after the wait and reads with a snapshot of its
 * own. It reports a conflict, and the store tries again; see
 * `test/interleavings/postgres-retention.test.ts`. Jobs without a key do not call it.
 *
 * Admission. `admissions` has a row for each job type, rule (1 rate limit, 2 debounce, 3 singleton)
 * and key that was enqueued lately; see `../../../core/admission.ts`.
 */
const SQL = `
CREATE TABLE @schema.tombstones (
  type text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  job uuid NOT NULL,
  outcome text COLLATE "C" NOT NULL CHECK (outcome IN ('succeeded', 'failed', 'cancelled')),
  ended_at bigint NOT NULL,
  keep_until bigint NOT NULL CHECK (keep_until > ended_at),
  PRIMARY KEY (type, key)
);

CREATE INDEX tombstones_until ON @schema.tombstones (keep_until);

ALTER TABLE @schema.pruned ADD COLUMN keys int NOT NULL DEFAULT 0;
ALTER TABLE @schema.pruned ADD COLUMN operator text;
ALTER TABLE @schema.pruned ADD COLUMN note text;

CREATE TABLE @schema.admissions (
  type text COLLATE "C" NOT NULL,
  kind smallint NOT NULL CHECK (kind BETWEEN 1 AND 3),
  key text COLLATE "C" NOT NULL,
  job uuid,
  next uuid,
  first_at bigint,
  counts text,
  look_at bigint NOT NULL,
  PRIMARY KEY (type, kind, key)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

CREATE INDEX admissions_look ON @schema.admissions (look_at);
CREATE INDEX admissions_next ON @schema.admissions (next) WHERE next IS NOT NULL;

CREATE FUNCTION @schema.refuse_removed_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM @schema.tombstones AS gone
    WHERE gone.type = NEW.type AND gone.key = NEW.key AND gone.keep_until > NEW.created_at) THEN
    RAISE EXCEPTION 'P12: a job with this key was removed meanwhile'
      USING ERRCODE = 'serialization_failure';
  END IF;
  RETURN NULL;
END$$;

CREATE TRIGGER removed_keys_are_taken AFTER INSERT ON @schema.jobs FOR EACH ROW
  WHEN (NEW.key IS NOT NULL) EXECUTE FUNCTION @schema.refuse_removed_key();
`

/** Around the body of the function: longer than any name, so that no name can end it. */
const QUOTE = `$${'_'.repeat(64)}$`

/** The statements, for a schema whose name is quoted already. */
export const sql = (schema: string): string =>
  SQL.replaceAll('$$', () => QUOTE).replaceAll('@schema', () => schema)
