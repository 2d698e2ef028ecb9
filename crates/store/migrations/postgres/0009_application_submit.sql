-- Submit for applications: in their own transaction, so that a task is there exactly if what it is
-- about is.

-- Counts the ids that are minted here; see duly.mint.
CREATE SEQUENCE duly.ordinal AS integer MINVALUE 0 MAXVALUE 1048575 CYCLE;

-- An id whose time is the task's first due time, as nodes mint them: 48 bits of time, 20 that count, so
-- that tasks of one millisecond sort as they were submitted, and 54 at random.
CREATE FUNCTION duly.mint(first_due bigint) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    number constant integer := nextval('duly.ordinal');
    random constant text    := replace(gen_random_uuid()::text, '-', '');
BEGIN
    RETURN (lpad(to_hex(first_due), 12, '0') || '7' || lpad(to_hex(number >> 8), 3, '0')
            || to_hex(128 | ((number & 255) >> 2))
            || lpad(to_hex(((number & 3) << 6) | (('x' || substr(random, 19, 2))::bit(8)::integer & 63)),
                    2, '0')
            || substr(random, 21))::uuid;
END
$$;

-- The number of a lane, which is made if it is missing. Nobody is kept from making others: a
-- transaction may take long.
CREATE FUNCTION duly.lane_of(in_tenant text, in_queue text, in_type text) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    most   constant integer := 100000;
    number integer;
BEGIN
    LOOP
        SELECT l.id INTO number FROM duly.lane l
        WHERE l.tenant = in_tenant AND l.queue = in_queue AND l.type = in_type;
        EXIT WHEN FOUND;
        IF (SELECT count(*) FROM duly.lane) >= most THEN
            RAISE EXCEPTION USING ERRCODE = 'program_limit_exceeded', CONSTRAINT = 'LANE_LIMIT',
                MESSAGE = 'there are ' || most || ' pairs of queue and type, which is the limit',
                HINT = 'Do not make a queue or a type per customer or per task: use labels.';
        END IF;
        INSERT INTO duly.lane (tenant, queue, type) VALUES (in_tenant, in_queue, in_type)
        ON CONFLICT DO NOTHING RETURNING lane.id INTO number;
        EXIT WHEN FOUND;
    END LOOP;
    RETURN number;
END
$$;

-- Makes a day that has no partition yet.
CREATE FUNCTION duly.need_day(day integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF to_regclass('duly.task_' || to_char(date '1970-01-01' + day, 'YYYYMMDD')) IS NULL THEN
        PERFORM duly.make_day(day);
    END IF;
END
$$;

-- Length first, so that no two sequences of strings hash alike.
CREATE FUNCTION duly.sized(bytes bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT int8send(octet_length(bytes)) || bytes
$$;

CREATE FUNCTION duly.sized(value text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT duly.sized(convert_to(value, 'UTF8'))
$$;

-- A number of 128 bits.
CREATE FUNCTION duly.wide(number bigint) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT int8send(0) || int8send(number)
$$;

-- What is hashed of a JSON value: neither the order of keys nor white space, but everything else. Of
-- keys that are there twice the last one counts.
CREATE FUNCTION duly.meaning(value json) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    inside bytea;
BEGIN
    CASE json_typeof(value)
    WHEN 'object' THEN
        SELECT string_agg(duly.sized(f.key) || duly.meaning(f.value), '' ORDER BY f.key COLLATE "C")
        INTO inside
        FROM (SELECT DISTINCT ON (e.key) e.key, e.value
              FROM json_each(value) WITH ORDINALITY e(key, value, n)
              ORDER BY e.key, e.n DESC) f;
        RETURN '{'::bytea || coalesce(inside, '') || '}'::bytea;
    WHEN 'array' THEN
        SELECT string_agg(duly.meaning(e.value), '' ORDER BY e.n) INTO inside
        FROM json_array_elements(value) WITH ORDINALITY e(value, n);
        RETURN '['::bytea || coalesce(inside, '') || ']'::bytea;
    WHEN 'string' THEN
        RETURN 's'::bytea || duly.sized(value #>> '{}');
    ELSE
        RETURN 'v'::bytea || duly.sized(btrim(value::text, E' \t\n\r'));
    END CASE;
END
$$;

-- The task that a key stands for: the one it came with within the last day, or else this one.
CREATE FUNCTION duly.take_key(hash bytea, body bytea, new_task uuid, at bigint) RETURNS uuid
LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    oldest constant bigint := at - 24 * 60 * 60 * 1000;
    known  record;
BEGIN
    LOOP
        SELECT k.task, k.body, k.created_at INTO known FROM duly.idempotency k WHERE k.key = hash;
        IF FOUND AND known.created_at > oldest
           AND EXISTS (SELECT FROM duly.task t WHERE t.id = known.task)
        THEN
            IF known.body <> body THEN
                PERFORM duly.refuse('idempotency_key', 'IDEMPOTENCY_KEY_REUSED',
                    'was used within the last 24 hours with other arguments');
            END IF;
            RETURN known.task;
        END IF;
        DELETE FROM duly.idempotency k WHERE k.key = hash AND k.task = known.task;
        INSERT INTO duly.idempotency (key, task, body, created_at)
        VALUES (hash, new_task, body, at) ON CONFLICT DO NOTHING;
        EXIT WHEN FOUND;
    END LOOP;
    -- Old keys go as new ones come, two for one, so that no sweep is ever needed.
    DELETE FROM duly.idempotency k
    WHERE k.ctid = ANY (ARRAY(SELECT o.ctid FROM duly.idempotency o WHERE o.created_at <= oldest
                              ORDER BY o.created_at LIMIT 2 FOR UPDATE SKIP LOCKED));
    RETURN new_task;
END
$$;

-- The back-off of a task about which neither it nor the settings say anything.
CREATE FUNCTION duly.usual_back_off() RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT '{"strategy": "exponential", "base": {"secs": 1, "nanos": 0}, "factor": 2,
             "cap": {"secs": 3600, "nanos": 0}, "jitter": "full"}'::jsonb
$$;

-- Retries and back-off of tasks that do not say: as the settings have them. Damaged ones count as none,
-- as they do for the nodes.
CREATE FUNCTION duly.defaults(OUT retries integer, OUT back_off jsonb) LANGUAGE plpgsql AS $$
DECLARE
    newest text;
BEGIN
    retries := 3;
    back_off := duly.usual_back_off();
    SELECT s.body INTO newest FROM duly.settings s ORDER BY s.version DESC LIMIT 1;
    IF FOUND THEN
        BEGIN
            PERFORM duly.back_off('{}', newest::jsonb -> 'back_off');
            retries := coalesce((newest::jsonb ->> 'retries')::integer, retries);
            back_off := coalesce(newest::jsonb -> 'back_off', back_off);
        EXCEPTION WHEN data_exception THEN
            NULL;
        END;
    END IF;
END
$$;

-- When a task is to start, and how that was said, for the hash of what was asked for.
CREATE FUNCTION duly.start(
    run_at timestamptz, delay interval, spread bigint, at bigint, OUT start bigint, OUT said bytea)
LANGUAGE plpgsql AS $$
DECLARE
    ahead constant integer := 400 * 24 * 60 * 60;
BEGIN
    start := coalesce(duly.millis('delay', extract(epoch FROM delay), ahead), 0);
    IF run_at IS NULL THEN
        said := duly.sized(duly.wide(start));
        start := at + start;
    ELSIF delay IS NOT NULL THEN
        PERFORM duly.refuse('run_at', 'CONFLICTING_FIELDS', 'or delay: give one, not both');
    ELSIF run_at < timestamptz '1970-01-01 00:00:00Z' OR run_at = timestamptz 'infinity' THEN
        PERFORM duly.refuse('run_at', 'INVALID_TIME', 'must be an instant from 1970 on');
    ELSE
        start := ceil(extract(epoch FROM run_at) * 1000);
        said := duly.sized(int8send(start));
        start := greatest(start, at);
    END IF;
    IF start + spread > at + ahead::bigint * 1000 THEN
        PERFORM duly.refuse(CASE WHEN run_at IS NULL THEN 'delay' ELSE 'run_at' END, 'OUT_OF_RANGE',
                            'lies more than 400 days ahead');
    END IF;
END
$$;

-- What is hashed of labels, in the order in which tasks keep them.
CREATE FUNCTION duly.meaning_of_labels(labels text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT int8send(count(*))
           || coalesce(string_agg(duly.sized(l.key) || duly.sized(l.value), '' ORDER BY l.n), '')
    FROM json_each_text(labels::json) WITH ORDINALITY l(key, value, n)
$$;

-- Submits a task in the caller's transaction; answers its id. The arguments are the fields of
-- `POST /tasks`, and one that is NULL counts as absent. Nobody is told, since all commits that tell
-- others wait for each other: nodes look around by themselves.
CREATE FUNCTION duly.submit(
    type            text,
    payload         json        DEFAULT NULL,
    queue           text        DEFAULT 'default',
    tenant          text        DEFAULT 'default',
    priority        integer     DEFAULT 5,
    run_at          timestamptz DEFAULT NULL,
    delay           interval    DEFAULT NULL,
    jitter          interval    DEFAULT NULL,
    retries         integer     DEFAULT NULL,
    backoff         jsonb       DEFAULT NULL,
    timeout         interval    DEFAULT NULL,
    labels          jsonb       DEFAULT NULL,
    idempotency_key text        DEFAULT NULL)
RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $$
#variable_conflict use_variable
DECLARE
    a_day    constant integer := 24 * 60 * 60;
    at       constant bigint  := duly.now();
    usual    constant jsonb   := duly.usual_back_off();
    body     constant text    := btrim(coalesce(payload, 'null')::text, E' \t\n\r');
    marks    constant text    := duly.labels(labels);
    spread   constant bigint  :=
        coalesce(duly.millis('jitter', extract(epoch FROM jitter), a_day), 0);
    limit_ms constant bigint  := duly.millis('timeout', extract(epoch FROM timeout), a_day);
    defaults record;
    due      record;
    lane     integer;
    id       uuid;
    known    uuid;
BEGIN
    queue := coalesce(queue, 'default');
    tenant := coalesce(tenant, 'default');
    priority := coalesce(priority, 5);
    backoff := coalesce(nullif(backoff, 'null'), '{}');
    PERFORM duly.check_name('type', type), duly.check_name('queue', queue),
            duly.check_name('tenant', tenant), duly.check_whole('priority', priority, 9),
            duly.check_whole('retries', retries, 1000),
            duly.check_json('payload', body, 1048576, 'PAYLOAD_TOO_LARGE');
    IF limit_ms = 0 THEN
        PERFORM duly.refuse('timeout', 'OUT_OF_RANGE', 'must be above 0');
    ELSIF length(idempotency_key) NOT BETWEEN 1 AND 255 OR duly.has_controls(idempotency_key) THEN
        PERFORM duly.refuse('idempotency_key', 'INVALID_KEY',
                            'is 1 to 255 characters without control characters');
    END IF;
    defaults := duly.defaults();
    due := duly.start(run_at, delay, spread, at);
    due.start := due.start + floor(random() * (spread + 1))::bigint;
    lane := duly.lane_of(tenant, queue, type);
    id := duly.mint(due.start);
    IF idempotency_key IS NOT NULL THEN
        known := duly.take_key(
            sha256(duly.sized(tenant) || duly.sized(idempotency_key)),
            sha256(duly.sized(type) || duly.sized(queue) || set_byte('\x00', 0, priority) || due.said
                   || duly.wide(spread) || int4send(coalesce(retries, 3))
                   || duly.sized(duly.back_off(backoff, usual)) || duly.wide(coalesce(limit_ms, 0))
                   || duly.meaning_of_labels(marks) || duly.meaning(body::json)),
            id, at);
        IF known <> id THEN
            RETURN known;
        END IF;
    END IF;
    PERFORM duly.need_day((due.start / (a_day * 1000))::integer);
    PERFORM duly.submit_batch(
        ARRAY[id], ARRAY[0], ARRAY[due.start], ARRAY[at], ARRAY[lane],
        ARRAY[(9 - priority)::smallint], ARRAY[coalesce(retries, defaults.retries)],
        ARRAY[limit_ms::integer],
        ARRAY[nullif(duly.back_off(backoff, defaults.back_off), duly.back_off('{}', usual))],
        ARRAY[marks], ARRAY[body], NULL, NULL, 0, '{}', 0, 0, 0);
    RETURN id;
END
$$;

REVOKE ALL ON FUNCTION duly.submit FROM PUBLIC;
