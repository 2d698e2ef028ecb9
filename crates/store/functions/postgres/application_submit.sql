-- Submit for applications: in their own transaction, so that a task exists exactly if what it is about
-- does.

-- The number of a lane, which is created if it is missing. Other transactions may create lanes at the
-- same time: an application's transaction may take long.
CREATE OR REPLACE FUNCTION duly.lane_of(in_tenant text, in_queue text, in_type text) RETURNS integer
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

-- The task that a key stands for: the one that used it within the last day, or else this one.
CREATE OR REPLACE FUNCTION duly.take_key(hash bytea, body bytea, new_task uuid, at bigint) RETURNS uuid
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
    -- Each new key deletes two old ones, so that no sweep is ever needed.
    DELETE FROM duly.idempotency k
    WHERE k.ctid = ANY (ARRAY(SELECT o.ctid FROM duly.idempotency o WHERE o.created_at <= oldest
                              ORDER BY o.created_at LIMIT 2 FOR UPDATE SKIP LOCKED));
    RETURN new_task;
END
$$;

-- When a task is to start, and how that was given, for the hash of the request.
CREATE OR REPLACE FUNCTION duly.start(
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

-- Submits a task in the caller's transaction; answers with its id. The arguments are the fields of
-- `POST /tasks`, and one that is NULL counts as absent. It notifies no node, since all commits that
-- notify wait for each other: nodes poll.
CREATE OR REPLACE FUNCTION duly.submit(
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
    quotas   record;
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
    PERFORM duly.admit_application(tenant);
    IF limit_ms = 0 THEN
        PERFORM duly.refuse('timeout', 'OUT_OF_RANGE', 'must be above 0');
    ELSIF length(idempotency_key) NOT BETWEEN 1 AND 255 OR duly.has_controls(idempotency_key) THEN
        PERFORM duly.refuse('idempotency_key', 'INVALID_KEY',
                            'is 1 to 255 characters without control characters');
    END IF;
    quotas := duly.quotas_of(tenant);
    IF octet_length(body) > quotas.payload_bytes THEN
        PERFORM duly.refuse('payload', 'QUOTA_EXCEEDED',
            format('is %s bytes; the quota payloadBytes of tenant %s is %s', octet_length(body), tenant,
                   quotas.payload_bytes));
    END IF;
    defaults := duly.settings_of(tenant);
    PERFORM duly.check_mask(body::json, defaults.redact);
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
    PERFORM duly.admit_task(tenant, quotas.waiting_tasks, quotas.submits_per_second);
    PERFORM duly.need_day((due.start / (a_day * 1000))::integer);
    PERFORM duly.submit_tasks(
        ARRAY[id], ARRAY[0], ARRAY[due.start], ARRAY[NULL::bigint], ARRAY[lane],
        ARRAY[(9 - priority)::smallint], ARRAY[coalesce(retries, defaults.retries)],
        ARRAY[limit_ms::integer],
        ARRAY[nullif(duly.back_off(backoff, defaults.back_off), duly.back_off('{}', usual))],
        ARRAY[marks], ARRAY[body], NULL, NULL, 0, '{}', 0, 0, 0, at);
    RETURN id;
END
$$;
