-- The days of duly.task: one partition for each day of the tasks' first due times.

-- Creates the partition of a day, counted from 1970. It is attached afterwards, which does not block
-- readers and writers of the other days; to create it as a partition would have to wait for them. Runs
-- with the rights of the owner of the tables, so that a node need not own them.
CREATE OR REPLACE FUNCTION duly.make_day(day integer) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name   constant text   := 'task_' || to_char(date '1970-01-01' + day, 'YYYYMMDD');
    day_ms constant bigint := 24 * 60 * 60 * 1000;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('duly.make_day', 0));
    -- Read from the catalogue itself: a partition that another transaction created while this one
    -- waited may not be in the cache yet.
    IF EXISTS (SELECT FROM pg_catalog.pg_class c
               WHERE c.relnamespace = 'duly'::regnamespace AND c.relname = name)
    THEN
        RETURN;
    END IF;
    EXECUTE format('CREATE TABLE duly.%I (LIKE duly.task INCLUDING STORAGE INCLUDING COMPRESSION)
                    WITH (fillfactor = 30, autovacuum_vacuum_scale_factor = 0.05)', name);
    EXECUTE format('ALTER TABLE duly.task ATTACH PARTITION duly.%I FOR VALUES FROM (%L) TO (%L)',
                   name, duly.first_id(day * day_ms), duly.first_id((day + 1) * day_ms));
END
$$;

-- Creates the partition of a day unless there is one.
CREATE OR REPLACE FUNCTION duly.need_day(day integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF to_regclass('duly.task_' || to_char(date '1970-01-01' + day, 'YYYYMMDD')) IS NULL THEN
        PERFORM duly.make_day(day);
    END IF;
END
$$;

-- The first half of the keys of the locks of days; a number that no other lock uses.
CREATE OR REPLACE FUNCTION duly.day_locks() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 1685416057
$$;

-- Called before tasks of these ids are stored or replayed: keeps the past days among theirs from being
-- dropped until the end of this transaction. The current day is not dropped anyway.
CREATE OR REPLACE FUNCTION duly.keep_days(ids uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(duly.day_locks(), d.day)
    FROM (SELECT DISTINCT duly.day_of(i.id)::integer AS day FROM unnest(ids) i(id) ORDER BY 1) d
    WHERE d.day < duly.now() / 86400000;
END
$$;

-- Sets how statements on tasks of these sorted ids are planned. If the ids are of one day: once, and
-- the plan skips the other days when it starts. Otherwise by the ids each time, since one plan for all
-- would visit all days between them.
CREATE OR REPLACE FUNCTION duly.plan_for(ids uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('plan_cache_mode',
        CASE WHEN duly.day_of(ids[1]) = duly.day_of(ids[cardinality(ids)])
             THEN 'force_generic_plan' ELSE 'force_custom_plan' END, true);
END
$$;
