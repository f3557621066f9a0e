/**
 * The tables of runs, the same as on SQLite. `run_events` is the truth, one line of a run's log in
 * each row; the row of the run has its end, its snapshot and its holder. As in the ledger of jobs
 * (P8), a line is never changed, nor deleted while its run exists.
 */
const TABLES = `
CREATE TABLE @schema.runs (
  id text COLLATE "C" PRIMARY KEY,
  last_seq bigint NOT NULL CHECK (last_seq >= 1),
  last_hash text COLLATE "C" NOT NULL,
  snapshot text NOT NULL,
  fence uuid,
  holder text,
  lease_until bigint,
  cancel text,
  failure text,
  CHECK ((fence IS NULL) = (holder IS NULL)),
  CHECK ((fence IS NULL) = (lease_until IS NULL))
) WITH (fillfactor = 80);

CREATE TABLE @schema.run_events (
  run text COLLATE "C" NOT NULL,
  seq bigint NOT NULL CHECK (seq >= 1),
  line text NOT NULL,
  PRIMARY KEY (run, seq)
);

CREATE TABLE @schema.run_contents (
  run text COLLATE "C" NOT NULL,
  path text COLLATE "C" NOT NULL,
  content bytea NOT NULL,
  PRIMARY KEY (run, path)
);
`

const TRIGGERS = `
CREATE FUNCTION @schema.refuse_while_run_exists() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM @schema.runs WHERE id = OLD.run) THEN
    RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN OLD;
END$$;

CREATE TRIGGER run_events_are_never_updated BEFORE UPDATE ON @schema.run_events
  FOR EACH ROW EXECUTE FUNCTION @schema.refuse('P8: events are never changed');

CREATE TRIGGER run_events_are_never_deleted BEFORE DELETE ON @schema.run_events FOR EACH ROW
  EXECUTE FUNCTION @schema.refuse_while_run_exists(
    'P8: events are not deleted while their run exists');

CREATE TRIGGER run_events_are_never_truncated BEFORE TRUNCATE ON @schema.run_events
  EXECUTE FUNCTION @schema.refuse('P8: events are not deleted while their run exists');

CREATE TRIGGER run_logs_only_grow BEFORE UPDATE ON @schema.runs FOR EACH ROW
  WHEN (NEW.last_seq < OLD.last_seq OR NEW.id <> OLD.id)
  EXECUTE FUNCTION @schema.refuse('P8: a log only grows');
`

/** Around the bodies of functions: longer than any name, so that no name can end one. */
const QUOTE = `$${'_'.repeat(64)}$`

/** The statements, for a schema whose name is quoted already. */
export const sql = (schema: string): string =>
  (TABLES + TRIGGERS).replaceAll('$$', () => QUOTE).replaceAll('@schema', () => schema)
