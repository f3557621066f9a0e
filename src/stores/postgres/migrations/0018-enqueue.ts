/**
 * `enqueue`, for callers that only have SQL. It writes what `enqueue` of the library writes: the
 * row of the job and its first fact, in the transaction of the caller.
 *
 * `job_types` is what workers have declared of the job types that they run. The function refuses a
 * type that has no row: nothing else in the database says which lifecycle, queue and policy a job
 * of the type has. It also refuses a type for which only code can say what a job needs (`needs`).
 *
 *   path, later_path,   the states of the first fact of a job that runs now, runs later, or is
 *   held_path           held; null if the lifecycle cannot hold new jobs
 *   needs_room          1 if a job is refused when its queue is full
 *
 * The function runs with the rights of its owner, and only roles that were granted EXECUTE may call
 * it, so that a caller needs no rights on the tables. It uses no table but those of its schema.
 *
 *   SQLSTATE   code in the message
 *   PW001      E_COMMAND_INVALID      PW005   E_UNSUPPORTED
 *   PW002      E_VALUE_INVALID        PW006   E_KEY_TAKEN
 *   PW003      E_NAME_UNKNOWN         PW007   E_QUEUE_FULL
 *   PW004      E_LIMIT_KEY_MISSING    PW008   E_JOB_EXISTS
 *   40001      E_TRANSITION_RACE
 *
 * Workers are notified by the commit of the caller, once for each transaction, and only if a
 * process listens; see `../listen.ts` for the channel and the lock.
 */
const TABLE = `
CREATE TABLE @schema.job_types (
  name text COLLATE "C" PRIMARY KEY,
  machine int NOT NULL,
  queue text COLLATE "C" NOT NULL,
  priority int NOT NULL,
  ahead_ms int,
  timeout_ms bigint,
  limit_key text COLLATE "C",
  policy text,
  path text COLLATE "C" NOT NULL,
  later_path text COLLATE "C" NOT NULL,
  held_path text COLLATE "C",
  needs_room smallint NOT NULL,
  bytes_max bigint NOT NULL,
  depth_max bigint NOT NULL,
  needs text COLLATE "C" CHECK (needs IN ('limit-keys', 'admission')),
  worker text COLLATE "C" NOT NULL,
  declared_at bigint NOT NULL
);
`

const CHECKS = `
  SELECT t.* INTO known FROM @schema.job_types AS t WHERE t.name = enqueue.type;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'E_NAME_UNKNOWN: No worker has declared the job type "%"',
      coalesce(left(enqueue.type, 80), '') USING ERRCODE = 'PW003',
      HINT = 'Check the name, and start a worker that runs it. SELECT name FROM job_types'
        || ' shows the types.';
  END IF;
  IF known.needs = 'limit-keys' THEN
    RAISE EXCEPTION 'E_LIMIT_KEY_MISSING: Limits of "%" need keys that only its code can compute',
      known.name USING ERRCODE = 'PW004',
      HINT = 'Enqueue it through the library or the HTTP API.';
  ELSIF known.needs = 'admission' THEN
    RAISE EXCEPTION 'E_UNSUPPORTED: "%" has a rateLimit, debounce or singleton, which only its'
      ' code can apply', known.name USING ERRCODE = 'PW005',
      HINT = 'Enqueue it through the library or the HTTP API.';
  END IF;
  SELECT m.name, m.version INTO STRICT machine_name, machine_version
    FROM @schema.machines AS m WHERE m.id = known.machine;

  IF enqueue.on_conflict IS NULL OR enqueue.on_conflict NOT IN ('existing', 'reject') THEN
    field := 'on_conflict';
    why := 'must be existing or reject';
  ELSIF enqueue.key ~ '^schedule(-run)?/' THEN
    field := 'key';
    why := 'must not begin with "schedule/" or "schedule-run/", which are keys of schedules';
  ELSIF enqueue.ahead IS NOT NULL AND enqueue.priority IS NOT NULL THEN
    field := 'ahead';
    why := 'must not come with "priority"';
  ELSIF enqueue.priority NOT BETWEEN -32767 AND 32767 THEN
    field := 'priority';
    why := 'must be a whole number from -32767 to 32767';
  ELSIF extract(epoch FROM enqueue.ahead) NOT BETWEEN 0 AND 86400 THEN
    field := 'ahead';
    why := 'must be from 0 to 1 day';
  ELSIF extract(epoch FROM enqueue.timeout) NOT BETWEEN 0.001 AND 31622400 THEN
    field := 'timeout';
    why := 'must be from 1 ms to 366 days';
  ELSIF NOT isfinite(enqueue.run_at) OR enqueue.run_at < 'epoch' THEN
    field := 'run_at';
    why := 'must be a time after 1970';
  ELSIF NOT isfinite(enqueue.deadline) OR enqueue.deadline < 'epoch' THEN
    field := 'deadline';
    why := 'must be a time after 1970';
  ELSIF cardinality(enqueue.tags) > 32 THEN
    field := 'tags';
    why := 'must not have more than 32 entries';
  ELSIF cardinality(enqueue.tags) > (SELECT count(DISTINCT tag) FROM unnest(enqueue.tags) AS tag)
      AND array_position(ARRAY(SELECT unnest(enqueue.tags)), NULL) IS NULL THEN
    field := 'tags';
    why := 'must not repeat';
  END IF;
  IF why IS NULL THEN
    FOR field, value IN
      SELECT 'key', enqueue.key WHERE enqueue.key IS NOT NULL
      UNION ALL SELECT 'tags', tag FROM unnest(enqueue.tags) AS tag
    LOOP
      -- As JavaScript counts: a character outside of the basic plane has two units.
      units := char_length(value);
      IF octet_length(value) > 255 THEN
        units := units
          + char_length(regexp_replace(value, '[^\\U00010000-\\U0010FFFF]', '', 'g'));
      END IF;
      why := CASE
        WHEN value IS NULL
          OR value !~
            '[^\\s\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff]'
          THEN 'must not be empty'
        WHEN units > 255 THEN 'must not be longer than 255 characters; it has ' || units
        WHEN value ~ '[\\u0001-\\u001f\\u007f-\\u009f]' THEN 'must not contain control characters'
      END;
      EXIT WHEN why IS NOT NULL;
    END LOOP;
  END IF;
  IF why IS NOT NULL THEN
    RAISE EXCEPTION 'E_COMMAND_INVALID: "%" %', field, why USING ERRCODE = 'PW001',
      HINT = format('Change "%s" and repeat the call. Nothing was written.', field);
  END IF;

  why := CASE
    WHEN enqueue.input IS NULL THEN 'is NULL; pass JSON'
    WHEN octet_length(enqueue.input::text) > known.bytes_max
      THEN 'is larger than ' || known.bytes_max || ' bytes'
    WHEN jsonb_path_exists(enqueue.input, format(
      'strict $.**{%s} ? (@.type() == "object" || @.type() == "array")',
      least(known.depth_max, 2147483646))::jsonpath)
      THEN 'is nested deeper than ' || known.depth_max || ' levels'
    -- A number that JavaScript has not is written with more digits than any that it has.
    WHEN enqueue.input::text ~ '[0-9]{255}' AND EXISTS (
      SELECT 1 FROM jsonb_path_query(enqueue.input,
        'strict $.** ? (@.type() == "number")') AS number
      WHERE abs(number::numeric) > 1.7976931348623157e308)
      THEN 'has a number outside of the range of JavaScript'
  END;
  IF why IS NOT NULL THEN
    RAISE EXCEPTION 'E_VALUE_INVALID: The value at input %', why USING ERRCODE = 'PW002',
      HINT = 'Pass plain data within the bounds.';
  END IF;
  IF enqueue.hold AND known.held_path IS NULL THEN
    RAISE EXCEPTION 'E_UNSUPPORTED: Lifecycle "%" has no hold', machine_name
      USING ERRCODE = 'PW005', HINT = 'Leave out "hold", or use a lifecycle that has it.';
  END IF;
`

const DECISION = `
  due_at := CASE WHEN NOT coalesce(enqueue.hold, false)
    THEN greatest(made_at, (extract(epoch FROM enqueue.run_at) * 1000)::bigint) END;
  new_lane := CASE WHEN due_at IS NULL THEN 0 WHEN due_at > made_at THEN 1 ELSE 2 END;
  new_path := CASE new_lane WHEN 0 THEN known.held_path WHEN 1 THEN known.later_path
    ELSE known.path END;
  new_ahead := CASE WHEN enqueue.ahead IS NOT NULL
      THEN nullif((extract(epoch FROM enqueue.ahead) * 1000)::int, 0)
    WHEN enqueue.priority IS NULL THEN known.ahead_ms END;
  order_number := coalesce(enqueue.priority,
    CASE WHEN enqueue.ahead IS NULL THEN known.priority ELSE 0 END);
  new_timeout := coalesce((extract(epoch FROM enqueue.timeout) * 1000)::bigint, known.timeout_ms);
  new_deadline := (extract(epoch FROM enqueue.deadline) * 1000)::bigint;
  tag_list := CASE WHEN cardinality(enqueue.tags) > 0
    THEN array_to_json(ARRAY(SELECT unnest(enqueue.tags)))::text END;
  -- A UUID of version 7, in the order of time like the ids of the library.
  random := replace(gen_random_uuid()::text, '-', '');
  new_id := coalesce(enqueue.job_id, (lpad(to_hex(made_at), 12, '0') || '7' || substr(random, 14, 3)
    || substr(random, 17))::uuid);
  new_data := format('{"created":{"type":%s,"queue":%s,"lifecycle":%s,"lifecycleVersion":%s,'
      '"tags":%s,"key":%s,"limitKey":%s,"retryOf":null,"timeoutMs":%s,"deadlineAt":%s,'
      '"policy":%s},"priority":%s%s,"runAt":%s}',
    to_json(known.name), to_json(known.queue), to_json(machine_name), machine_version,
    coalesce(tag_list, '[]'), coalesce(to_json(enqueue.key)::text, 'null'),
    coalesce(to_json(known.limit_key)::text, 'null'), coalesce(new_timeout::text, 'null'),
    coalesce(new_deadline::text, 'null'), coalesce(known.policy, 'null'), order_number,
    ',"aheadMs":' || new_ahead, coalesce(due_at::text, 'null'));
`

const WRITES = `
  -- Two callers must not both use the last room, so the row of the queue is locked.
  IF new_lane = 2 AND known.needs_room = 1 THEN
    SELECT q.max_depth INTO depth FROM @schema.queues AS q
      WHERE q.name = known.queue AND q.max_depth IS NOT NULL FOR UPDATE;
    IF FOUND AND depth <= (SELECT count(*) FROM (
        SELECT 1 FROM @schema.jobs AS j WHERE j.lane = 2 AND j.queue = known.queue
        UNION ALL SELECT 1 FROM @schema.jobs AS j WHERE j.lane = 7 AND j.queue = known.queue
        LIMIT depth) AS ready)
      AND NOT EXISTS (SELECT 1 FROM @schema.jobs AS j
        WHERE j.type = known.name AND j.key = enqueue.key) THEN
      RAISE EXCEPTION 'E_QUEUE_FULL: The queue "%" already has % ready jobs, its maxDepth',
        known.queue, depth USING ERRCODE = 'PW007',
        HINT = 'Nothing was written. Enqueue it later, add workers, or raise the limit: pawl queue'
          ' limit.';
    END IF;
  END IF;

  SELECT s.base + pg_current_xact_id()::text::bigint, '"' || replace(n.nspname, '"', '""') || '"'
    INTO STRICT new_place, own_schema
    FROM @schema.store AS s JOIN pg_class AS c ON c.oid = s.tableoid
    JOIN pg_namespace AS n ON n.oid = c.relnamespace;
  FOR tries IN 1..5 LOOP
    IF enqueue.key IS NOT NULL THEN
      SELECT j.id INTO holder FROM @schema.jobs AS j
        WHERE j.type = known.name AND j.key = enqueue.key;
      IF NOT FOUND THEN
        SELECT gone.job INTO holder FROM @schema.tombstones AS gone
          WHERE gone.type = known.name AND gone.key = enqueue.key AND gone.keep_until > made_at;
      END IF;
      IF FOUND AND enqueue.on_conflict = 'existing' THEN RETURN holder; END IF;
      IF FOUND THEN
        RAISE EXCEPTION 'E_KEY_TAKEN: Job % of type "%" already has the key "%"', holder,
          known.name, enqueue.key USING ERRCODE = 'PW006',
          HINT = 'Nothing was written. Use that job, another key, or on_conflict => ''existing''.';
      END IF;
    END IF;
    INSERT INTO @schema.jobs (id, lane, machine, state, queue, type, priority, ahead_ms, run_at,
      seq, created_at, updated_at, key, limit_key, tags, timeout_ms, deadline_at, policy, place)
    VALUES (new_id, new_lane, known.machine, substring(new_path FROM '[^>]*$'),
      known.queue, known.name, order_number, new_ahead, due_at, 1, made_at, made_at,
      enqueue.key, known.limit_key, tag_list, new_timeout, new_deadline,
      known.policy, new_place)
    ON CONFLICT DO NOTHING;
    IF FOUND THEN
      INSERT INTO @schema.ledger (tx, job, seq, kind, at, path, actor, data, payload)
      VALUES (new_place, new_id, 1, 10, made_at, new_path, 'client', new_data,
        enqueue.input::text);
      EXIT;
    END IF;
    -- Another transaction has committed the key meanwhile, which the next round finds.
    IF EXISTS (SELECT 1 FROM @schema.jobs AS j WHERE j.id = new_id) AND NOT EXISTS (
      SELECT 1 FROM @schema.jobs AS j WHERE j.type = known.name AND j.key = enqueue.key) THEN
      RAISE EXCEPTION 'E_JOB_EXISTS: Job % already exists', new_id USING ERRCODE = 'PW008',
        HINT = 'Use another "job_id". To enqueue at most once, use "key" instead.';
    END IF;
    IF tries = 5 THEN
      RAISE EXCEPTION 'E_TRANSITION_RACE: The key of the job changes hands too often'
        USING ERRCODE = '40001', HINT = 'Repeat the transaction.';
    END IF;
  END LOOP;

  hash := sha256(convert_to(own_schema, 'UTF8'));
  channel := 'pawl_' || encode(substr(hash, 1, 8), 'hex');
  told := channel || ' ' || new_place;
  IF current_setting('pawl.enqueued', true) IS DISTINCT FROM told THEN
    PERFORM pg_notify(channel, '') WHERE EXISTS (
      SELECT 1 FROM pg_locks AS l
      WHERE l.locktype = 'advisory' AND l.classid = 1885435756
        AND l.objid::int8 = ('x' || encode(substr(hash, 9, 4), 'hex'))::bit(32)::int8
        AND l.objsubid = 2 AND l.mode = 'ShareLock' AND l.granted
        AND l.database = (SELECT d.oid FROM pg_database AS d
          WHERE d.datname = current_database()));
    PERFORM set_config('pawl.enqueued', told, true);
  END IF;
  RETURN new_id;
`

const PARAMETERS = (input: 'text' | 'jsonb') => `type text, input ${input},
  key text DEFAULT NULL, on_conflict text DEFAULT 'existing', priority int DEFAULT NULL,
  ahead interval DEFAULT NULL, run_at timestamptz DEFAULT NULL, tags text[] DEFAULT NULL,
  timeout interval DEFAULT NULL, deadline timestamptz DEFAULT NULL, hold boolean DEFAULT false,
  job_id uuid DEFAULT NULL`

const HEAD = `RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp`

const TYPES = (input: 'text' | 'jsonb') =>
  `text, ${input}, text, text, int, interval, timestamptz, text[], interval, timestamptz, boolean,
  uuid`

const VARIABLES = `
DECLARE
  known @schema.job_types%ROWTYPE;
  made_at bigint := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
  machine_name text;
  machine_version int;
  field text;
  value text;
  units int;
  why text;
  due_at bigint;
  order_number int;
  tag_list text;
  random text;
  new_id uuid;
  new_lane smallint;
  new_path text;
  new_ahead int;
  new_timeout bigint;
  new_deadline bigint;
  new_data text;
  new_place bigint;
  depth bigint;
  holder uuid;
  own_schema text;
  hash bytea;
  channel text;
  told text;
`

/** Around the bodies of functions: longer than any name, so that no name can end one. */
const QUOTE = `$${'_'.repeat(64)}$`

/** Without empty lines: in the manifest they separate objects. */
const BODY = `${VARIABLES}BEGIN${CHECKS}${DECISION}${WRITES}END`.replaceAll('\n\n', '\n')

/** A text is read as JSON here, so that a mistake in it is reported with a code of Pawl. */
const FUNCTIONS = `
CREATE FUNCTION @schema.enqueue(${PARAMETERS('jsonb')})
${HEAD} AS ${QUOTE}${BODY}${QUOTE};

CREATE FUNCTION @schema.enqueue(${PARAMETERS('text')})
${HEAD} AS ${QUOTE}
DECLARE
  parsed jsonb;
BEGIN
  BEGIN
    parsed := enqueue.input::jsonb;
  EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    RAISE EXCEPTION 'E_VALUE_INVALID: The value at input is not JSON that can be stored: %', SQLERRM
      USING ERRCODE = 'PW002', HINT = 'Pass a JSON text.';
  END;
  RETURN @schema.enqueue(type, parsed, key, on_conflict, priority, ahead, run_at, tags, timeout,
    deadline, hold, job_id);
END${QUOTE};

REVOKE EXECUTE ON FUNCTION @schema.enqueue(${TYPES('jsonb')}) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION @schema.enqueue(${TYPES('text')}) FROM PUBLIC;
`

/** The statements, for a schema whose name is quoted already. */
export const sql = (schema: string): string =>
  (TABLE + FUNCTIONS).replaceAll('@schema', () => schema)
