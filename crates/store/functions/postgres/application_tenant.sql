-- What a tenant's record says about tasks that applications submit.

-- The back-off of a task for which neither it nor the settings specify one.
CREATE OR REPLACE FUNCTION duly.usual_back_off() RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT '{"strategy": "exponential", "base": {"secs": 1, "nanos": 0}, "factor": 2,
             "cap": {"secs": 3600, "nanos": 0}, "jitter": "full"}'::jsonb
$$;

-- What some settings say, over what holds without them. Damaged ones count as none, as they do for the
-- nodes.
CREATE OR REPLACE FUNCTION duly.settings_over(
    body text, INOUT retries integer, INOUT back_off jsonb, INOUT redact jsonb)
LANGUAGE plpgsql AS $$
DECLARE
    settings jsonb;
    own      jsonb;
BEGIN
    IF body IS NULL THEN
        RETURN;
    END IF;
    settings := body::jsonb;
    own := nullif(settings -> 'back_off', 'null');
    IF own IS NOT NULL THEN
        IF NOT own ?& '{strategy,base,factor,cap,jitter}' THEN
            RAISE data_exception;
        END IF;
        PERFORM duly.word(own, 'strategy', '{none,fixed,linear,exponential}'),
                duly.word(own, 'jitter', '{none,equal,full}'), duly.back_off('{}', own);
    END IF;
    retries := coalesce((settings ->> 'retries')::integer, retries);
    back_off := coalesce(own, back_off);
    IF jsonb_typeof(settings -> 'redact') = 'array' THEN
        redact := settings -> 'redact';
    END IF;
EXCEPTION WHEN data_exception THEN
    NULL;
END
$$;

-- Retries and back-off of a tenant's tasks that do not specify them, and what is masked in its payloads.
CREATE OR REPLACE FUNCTION duly.settings_of(
    in_tenant text, OUT retries integer, OUT back_off jsonb, OUT redact jsonb)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT own.* INTO retries, back_off, redact
    FROM duly.settings_over(
            (SELECT s.body FROM duly.settings s ORDER BY s.version DESC LIMIT 1),
            3, duly.usual_back_off(), '[]') usual,
        LATERAL duly.settings_over(
            (SELECT t.settings FROM duly.tenant t WHERE t.name = in_tenant),
            usual.retries, usual.back_off, usual.redact) own;
END
$$;

-- Whether a payload holds the mask where one of these paths leads: it was read masked. A path is a JSON
-- array of keys, in which * stands for every key and every index.
CREATE OR REPLACE FUNCTION duly.holds_mask(value json, paths jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM jsonb_array_elements(paths) p(path) WHERE p.path = '[]') THEN
        RETURN json_typeof(value) = 'string' AND value #>> '{}' = '***';
    END IF;
    RETURN EXISTS (
        SELECT FROM (
            SELECT e.value, (SELECT jsonb_agg(p.path - 0) FROM jsonb_array_elements(paths) p(path)
                             WHERE p.path ->> 0 IN (e.key, '*')) AS below
            FROM (SELECT m.key, m.value FROM json_each(
                      CASE json_typeof(value) WHEN 'object' THEN value END) m
                  UNION ALL
                  SELECT (i.n - 1)::text, i.value FROM json_array_elements(
                      CASE json_typeof(value) WHEN 'array' THEN value END) WITH ORDINALITY i(value, n)
                 ) e) inside
        WHERE inside.below IS NOT NULL AND duly.holds_mask(inside.value, inside.below));
END
$$;

-- Refuses a payload that was read masked. The paths are JSON pointers.
CREATE OR REPLACE FUNCTION duly.check_mask(payload json, redact jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF redact <> '[]' AND duly.holds_mask(payload, (
        SELECT jsonb_agg((SELECT jsonb_agg(replace(replace(k.key, '~1', '/'), '~0', '~') ORDER BY k.n)
                          FROM unnest(string_to_array(substr(r.path, 2), '/'))
                               WITH ORDINALITY k(key, n)))
        FROM jsonb_array_elements_text(redact) r(path)))
    THEN
        PERFORM duly.refuse('payload', 'MASKED',
            'holds *** where the setting redact masks it; send the value, or leave it out');
    END IF;
END
$$;

-- The quotas of a tenant. Damaged ones count as none.
CREATE OR REPLACE FUNCTION duly.quotas_of(
    in_tenant text, OUT waiting_tasks bigint, OUT submits_per_second bigint, OUT payload_bytes bigint)
LANGUAGE plpgsql AS $$
DECLARE
    quotas text;
BEGIN
    SELECT t.quotas INTO quotas FROM duly.tenant t WHERE t.name = in_tenant;
    IF FOUND THEN
        BEGIN
            waiting_tasks := quotas::jsonb ->> 'waiting_tasks';
            submits_per_second := quotas::jsonb ->> 'submits_per_second';
            payload_bytes := quotas::jsonb ->> 'payload_bytes';
        EXCEPTION WHEN data_exception THEN
            NULL;
        END;
    END IF;
END
$$;

-- Refuses one task more than a tenant may have waiting. What other transactions have not committed does
-- not count. A rate is not counted: it would take a row that every submit updates, and that the next one
-- waits for. One of nothing holds.
CREATE OR REPLACE FUNCTION duly.admit_task(in_tenant text, waiting_tasks bigint, submits_per_second bigint)
RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan SET enable_seqscan = off AS $$
DECLARE
    waiting bigint;
    quota   text;
    most    bigint;
BEGIN
    IF submits_per_second = 0 THEN
        quota := 'submitsPerSecond';
        most := 0;
    ELSIF waiting_tasks IS NOT NULL THEN
        -- Lane by lane, so that no task of another tenant is looked at.
        SELECT count(*) INTO waiting FROM (
            SELECT FROM duly.lane l
                CROSS JOIN LATERAL (SELECT FROM duly.due d WHERE d.lane = l.id OFFSET 0) d
            WHERE l.tenant = in_tenant
            UNION ALL
            SELECT FROM duly.lane l
                CROSS JOIN LATERAL (SELECT FROM duly.blocked b WHERE b.lane = l.id OFFSET 0) b
            WHERE l.tenant = in_tenant
            LIMIT waiting_tasks) few;
        IF waiting >= waiting_tasks THEN
            quota := 'waitingTasks';
            most := waiting_tasks;
        END IF;
    END IF;
    IF quota IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'configuration_limit_exceeded', CONSTRAINT = 'QUOTA_EXCEEDED',
            COLUMN = 'tenant',
            MESSAGE = format('tenant %s has used up its quota %s, which is %s', in_tenant, quota, most),
            HINT = 'Submit again when some of its tasks have started, or ask for a higher one.';
    END IF;
END
$$;

-- Refuses a tenant for which the application may not submit, and one that is suspended.
CREATE OR REPLACE FUNCTION duly.admit_application(in_tenant text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM duly.application_tenant)
       AND NOT EXISTS (
           SELECT FROM duly.application_tenant a JOIN pg_roles r ON r.rolname = a.role
           WHERE a.tenant IN (in_tenant, '*') AND pg_has_role(session_user, r.oid, 'MEMBER'))
    THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', CONSTRAINT = 'FORBIDDEN',
            COLUMN = 'tenant',
            MESSAGE = 'user ' || session_user || ' may not submit for tenant ' || in_tenant,
            HINT = 'An administrator adds the role and the tenant to duly.application_tenant.';
    END IF;
    IF EXISTS (SELECT FROM duly.pause p WHERE p.tenant = in_tenant AND p.queue = '') THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            CONSTRAINT = 'TENANT_SUSPENDED', COLUMN = 'tenant',
            MESSAGE = 'tenant ' || in_tenant || ' is suspended',
            HINT = 'An admin of the installation can resume it: duly tenant resume.';
    END IF;
END
$$;
