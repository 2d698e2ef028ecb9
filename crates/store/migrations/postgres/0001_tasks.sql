-- The store's clock, in milliseconds since 1970. Tests set their own on their connections.
CREATE FUNCTION duly.now() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT coalesce(nullif(current_setting('duly.now_ms', true), '')::bigint,
                    floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
$$;

-- (tenant, queue, type), numbered, so that rows and due keys stay small. Names sort by their bytes.
CREATE TABLE duly.lane (
    id      integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- In which transaction. Nodes read what is new by it: numbers do not become visible in their order.
    made_in xid8 NOT NULL DEFAULT pg_current_xact_id(),
    tenant  text COLLATE "C" NOT NULL,
    queue   text COLLATE "C" NOT NULL,
    type    text COLLATE "C" NOT NULL,
    UNIQUE (tenant, queue, type)
);

CREATE INDEX lane_made_in ON duly.lane (made_in);

-- One row per task, in a partition per day of its first due time, which its id carries. No index
-- mentions a column that changes, and every page has room for three versions of its rows, as stored,
-- as granted and as ended, so that updates stay on it even while somebody holds an old snapshot. What
-- changes stands first and the payload last: the log then holds only the difference.
CREATE TABLE duly.task (
    id          uuid     NOT NULL,
    run_at      bigint   NOT NULL,
    created_at  bigint   NOT NULL,
    granted_at  bigint,
    finished_at bigint,
    -- When the lease is overdue, if that was moved.
    extended_to bigint,
    -- Who holds or held the last lease, and with which of its claims it came: the complement of that
    -- number from when a handler's own transaction has finished the task until its batch is told.
    session     uuid,
    sequence    bigint,
    epoch       integer  NOT NULL,
    lane        integer  NOT NULL,
    run         integer  NOT NULL,
    charged     integer  NOT NULL,
    retries     integer  NOT NULL,
    losses      integer  NOT NULL,
    timeout_ms  integer,
    status      smallint NOT NULL,
    -- 9 - priority; that of a suspect is 10 higher.
    rank        smallint NOT NULL,
    back_off    text,
    error       text,
    labels      text,
    result      text,
    payload     text     NOT NULL,
    PRIMARY KEY (id)
) PARTITION BY RANGE (id);

CREATE INDEX task_lane ON duly.task (lane, id);

-- Not every server is built with lz4; its own compression does as well, only slower.
DO $$
BEGIN
    ALTER TABLE duly.task ALTER COLUMN payload SET COMPRESSION lz4;
    ALTER TABLE duly.task ALTER COLUMN result SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
    RAISE NOTICE 'this server has no lz4';
END
$$;

-- The lowest id that a task first due at this time could have.
CREATE FUNCTION duly.first_id(at bigint) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (lpad(to_hex(at), 12, '0') || repeat('0', 20))::uuid
$$;

-- The day of the time at which a task of this id was first due, counted from 1970.
CREATE FUNCTION duly.day_of(id uuid) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / 86400000
$$;

-- Makes the partition of a day, counted from 1970. It is attached, which leaves those who read and
-- write the others alone; to be made as a partition it would have to wait for them. With the rights of
-- the tables' owner: a node need not be that.
CREATE FUNCTION duly.make_day(day integer) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name   constant text   := 'task_' || to_char(date '1970-01-01' + day, 'YYYYMMDD');
    day_ms constant bigint := 24 * 60 * 60 * 1000;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('duly.make_day', 0));
    -- A look into the catalogue itself: what another has made while this one waited may not be in
    -- its cache yet.
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

-- For whoever is about to store tasks of these ids, or to have them run again: days of them that are
-- over are not dropped until the end of this transaction. That of today is not dropped anyway.
CREATE FUNCTION duly.keep_days(ids uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(duly.day_locks(), d.day)
    FROM (SELECT DISTINCT duly.day_of(i.id)::integer AS day FROM unnest(ids) i(id) ORDER BY 1) d
    WHERE d.day < duly.now() / 86400000;
END
$$;

-- The first half of the names of those locks; any number that nobody else uses.
CREATE FUNCTION duly.day_locks() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 1685416057
$$;

-- Drops it, with all that is in it. See duly.keep_days.
CREATE FUNCTION duly.drop_day(day integer) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('DROP TABLE duly.%I', 'task_' || to_char(date '1970-01-01' + day, 'YYYYMMDD'));
END
$$;

REVOKE ALL ON FUNCTION duly.make_day, duly.drop_day FROM PUBLIC;

-- A row exists exactly while its task is PENDING. Rows come and go all the time, so they are
-- vacuumed by number and not by share.
CREATE TABLE duly.due (
    run_at bigint   NOT NULL,
    task   uuid     NOT NULL,
    lane   integer  NOT NULL,
    rank   smallint NOT NULL,
    PRIMARY KEY (lane, rank, run_at, task)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
        autovacuum_vacuum_cost_delay = 0);

-- `key` hashes tenant and key, `body` what was asked for.
CREATE TABLE duly.idempotency (
    key        bytea  NOT NULL PRIMARY KEY,
    task       uuid   NOT NULL,
    body       bytea  NOT NULL,
    created_at bigint NOT NULL
);

CREATE INDEX idempotency_age ON duly.idempotency (created_at);
